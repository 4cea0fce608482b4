// SPDX-License-Identifier: Apache-2.0
//
// Swizzles bit by bit, panels byte by byte, and the boxes of the copy engine against panels.
#include "layout/swizzle.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace nautilus::layout {
namespace {

constexpr std::array kEverySwizzle = {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128};

TEST(Swizzle, BitsOfTheAddress) {
  const auto bit = [](uint32_t address, int i) { return address >> i & 1; };
  for (const Swizzle swizzle : kEverySwizzle) {
    const int bits = swizzle == Swizzle::B128  ? 3
                     : swizzle == Swizzle::B64 ? 2
                                               : swizzle == Swizzle::B32;
    for (uint32_t address = 0; address < 4096; ++address) {
      uint32_t expected = address;
      for (int i = 0; i < bits; ++i) expected ^= bit(address, 7 + i) << (4 + i);
      EXPECT_EQ(swizzled(address, swizzle), expected);
    }
  }
}

TEST(Swizzle, InvolutionOnItsAtom) {
  for (const Swizzle swizzle : kEverySwizzle) {
    const auto atom = static_cast<uint32_t>(atom_bytes(swizzle));
    std::set<uint32_t> seen;
    for (uint32_t address = 0; address < atom; ++address) {
      const uint32_t moved = swizzled(address, swizzle);
      EXPECT_LT(moved, atom);
      EXPECT_EQ(swizzled(moved, swizzle), address);
      seen.insert(moved);
      // The pattern repeats from atom to atom: offsets and addresses swizzle alike.
      EXPECT_EQ(swizzled(address + 5 * atom, swizzle), moved + 5 * atom);
    }
    EXPECT_EQ(seen.size(), atom);
  }
}

// The chunks that 8 consecutive rows hold at one position of the row are in 8 different groups of
// banks, which is the purpose of swizzles.
TEST(Swizzle, ColumnsOfChunksHitEveryBank) {
  for (const Swizzle swizzle : {Swizzle::B32, Swizzle::B64, Swizzle::B128}) {
    const PanelTile tile = {64, span_bytes(swizzle) / 2, swizzle};
    for (int col = 0; col < tile.cols; col += 8) {
      for (int row = 0; row < 64; row += 8) {
        std::set<uint32_t> groups;
        for (int r = row; r < row + 8; ++r) groups.insert(tile.offset(r, col) / 16 % 8);
        EXPECT_EQ(groups.size(), 8u) << swizzle_name(swizzle);
      }
    }
  }
}

TEST(Panel, WorkedExample) {
  const PanelTile tile = {64, 128};
  EXPECT_EQ(tile.offset(5, 20), 760u);
  EXPECT_EQ(tile.offset(5, 84), 8192u + 760u);
  EXPECT_EQ(tile.element_at(8192 + 761), (TileElement{5, 84, 1}));
  EXPECT_EQ(tile.panels(), 2);
  EXPECT_EQ(tile.bytes(), 16384);
}

TEST(Panel, EveryByteBelongsToOneElement) {
  for (const Swizzle swizzle : kEverySwizzle) {
    for (const int element_bytes : {1, 2, 4}) {
      for (const int rows : {8, 64, 80, 128}) {
        for (const int cols : {16, 64, 80, 128}) {
          const PanelTile tile = {rows, cols, swizzle, element_bytes};
          std::vector<int> used(static_cast<size_t>(tile.bytes()));
          for (int row = 0; row < rows; ++row) {
            for (int col = 0; col < tile.panels() * tile.panel_cols(); ++col) {
              const uint32_t offset = tile.offset(row, col);
              for (int byte = 0; byte < element_bytes; ++byte) {
                ++used[offset + static_cast<uint32_t>(byte)];
                EXPECT_EQ(tile.element_at(offset + static_cast<uint32_t>(byte)),
                          (TileElement{row, col, byte}));
              }
            }
          }
          for (const int count : used) ASSERT_EQ(count, 1);
        }
      }
    }
  }
}

TEST(TmaBox, FillsPanels) {
  for (const Swizzle swizzle : kEverySwizzle) {
    for (const int rows : {8, 64, 80, 176, 256}) {
      for (const int panels : {1, 2, 3}) {
        const int inner = span_bytes(swizzle) / 2;
        const PanelTile tile = {rows, inner * panels, swizzle};
        const std::array box = {inner, rows, panels};
        for (int row = 0; row < rows; ++row) {
          for (int col = 0; col < tile.cols; ++col) {
            const std::array at = {col % inner, row, col / inner};
            ASSERT_EQ(tma_box_offset(box, at, swizzle, 2), tile.offset(row, col));
          }
        }
      }
    }
  }
}

// One copy per panel, each to the panel's own place, is the same as one copy of all.
TEST(TmaBox, PanelByPanel) {
  const PanelTile tile = {80, 128};
  const std::array box = {64, 80};
  for (int row = 0; row < 80; ++row) {
    for (int col = 0; col < 128; ++col) {
      const std::array at = {col % 64, row};
      EXPECT_EQ(static_cast<uint32_t>(col / 64 * tile.panel_bytes()) +
                    tma_box_offset(box, at, Swizzle::B128, 2),
                tile.offset(row, col));
    }
  }
}

TEST(TmaBox, WithoutSwizzleIsDense) {
  const std::array box = {24, 3, 2};
  const std::array at = {23, 2, 1};
  EXPECT_EQ(tma_box_offset(box, at, Swizzle::None, 4), 24u * 3 * 2 * 4 - 4);
}

}  // namespace
}  // namespace nautilus::layout

// SPDX-License-Identifier: Apache-2.0
//
// An accumulator stored through stmatrix must be where the copy engine reads it: each byte of the
// tile once, each element at the place of its coordinates in the box.
#include "layout/stmatrix.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "layout/fragments.h"

namespace nautilus::layout {
namespace {

constexpr std::array kStoreSwizzles = {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128};

uint32_t box_offset(const PanelTile& tile, int row, int col) {
  const int inner = tile.panel_cols();
  const std::array box = {inner, tile.rows, tile.panels()};
  const std::array at = {col % inner, row, col / inner};
  return tma_box_offset(box, at, tile.swizzle, 2);
}

TEST(Stmatrix, FragmentOfAMatrix) {
  EXPECT_EQ(matrix_element(14, 1), (MatrixElement{3, 5}));
  EXPECT_EQ(matrix_element(14, 1, true), (MatrixElement{5, 3}));
  for (const bool transposed : {false, true}) {
    std::set<std::pair<int, int>> seen;
    for (int lane = 0; lane < 32; ++lane) {
      for (int half = 0; half < 2; ++half) {
        const MatrixElement element = matrix_element(lane, half, transposed);
        seen.insert({element.row, element.col});
      }
    }
    EXPECT_EQ(seen.size(), 64u);
  }
}

// Stores acc(n) and checks every byte of the part of the tile it covers.
void check_store(const FragmentStore& store) {
  const Layout layout = acc(store.cols);
  std::vector<int> used(static_cast<size_t>(store.tile.bytes()));
  for (int warp = 0; warp < 4; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int pair = 0; pair < store.pairs(); ++pair) {
        for (int half = 0; half < 2; ++half) {
          const uint32_t offset = element_offset(store, warp, lane, pair, half);
          const std::vector<int> at = layout.coordinates_of({0, warp, lane, 2 * pair + half});
          const int row = store.first_row + at[store.transposed ? 1 : 0];
          const int col = store.first_col + at[store.transposed ? 0 : 1];
          ASSERT_EQ(offset, box_offset(store.tile, row, col));
          ++used[offset];
          ++used[offset + 1];
        }
      }
    }
  }
  int covered = 0;
  for (const int count : used) {
    ASSERT_LE(count, 1);
    covered += count;
  }
  EXPECT_EQ(covered, 64 * store.cols * 2);
}

TEST(Stmatrix, FillsA64x64PanelOnce) {
  const FragmentStore store = {{64, 64}, 64};
  EXPECT_EQ(store.tile.bytes(), 64 * 64 * 2);
  check_store(store);
}

TEST(Stmatrix, EveryWidthAndSwizzle) {
  for (const Swizzle swizzle : kStoreSwizzles) {
    for (int n = 8; n <= 256; n += 8) check_store({{64, n, swizzle}, n});
  }
}

TEST(Stmatrix, TransposedStore) {
  for (const Swizzle swizzle : kStoreSwizzles) {
    for (int n = 8; n <= 256; n += 8) {
      check_store({.tile = {n, 64, swizzle}, .cols = n, .transposed = true});
    }
  }
}

TEST(Stmatrix, PartOfALargerTile) {
  check_store({{192, 128}, 64, 64, 64});
  check_store({{192, 128}, 40, 128, 8});
  check_store(
      {.tile = {128, 128}, .cols = 64, .first_row = 64, .first_col = 64, .transposed = true});
}

TEST(Stmatrix, StepsOfSixteenColumns) {
  const FragmentStore store = {{64, 72}, 72};
  EXPECT_EQ(store.steps(), 5);
  EXPECT_EQ(matrices_of_step(store, 3), 4);
  EXPECT_EQ(matrices_of_step(store, 4), 2);
}

// The address that kernels running on the hardware compute, in their own terms: row lane % 16 of
// the warp, chunk of 8 columns j + lane / 16, XOR of chunk and row.
TEST(Stmatrix, AddressesOfKnownKernels) {
  const FragmentStore store = {{64, 128}, 128};
  for (int warp = 0; warp < 4; ++warp) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int j = 0; j < 16; j += 2) {
        const int r = 16 * warp + (lane & 15), h = lane >> 4;
        const int expected = (j >> 3) * 8192 + r * 128 + ((((j & 7) + h) ^ (r & 7)) << 4);
        EXPECT_EQ(lane_row_offset(store, warp, lane, j / 2), static_cast<uint32_t>(expected));
      }
    }
  }
}

// The eight rows of a matrix are written together: with a swizzle they hit all banks once.
TEST(Stmatrix, NoBankConflicts) {
  for (const Swizzle swizzle : {Swizzle::B32, Swizzle::B64, Swizzle::B128}) {
    for (const bool transposed : {false, true}) {
      const FragmentStore store = {.tile = {64, 64, swizzle}, .cols = 64, .transposed = transposed};
      for (int warp = 0; warp < 4; ++warp) {
        for (int step = 0; step < 4; ++step) {
          for (int matrix = 0; matrix < 4; ++matrix) {
            std::set<uint32_t> groups;
            for (int row = 0; row < 8; ++row) {
              groups.insert(lane_row_offset(store, warp, 8 * matrix + row, step) / 16 % 8);
            }
            EXPECT_EQ(groups.size(), 8u);
          }
        }
      }
    }
  }
}

// ldmatrix from the same addresses gives the A operand.
TEST(Stmatrix, LoadsTheAOperand) {
  const FragmentStore store = {{64, 128}, 128};
  const Layout layout = afrag(128);
  for (int row = 0; row < 64; ++row) {
    for (int col = 0; col < 128; ++col) {
      const Place place = layout.owner_of({row, col});
      EXPECT_EQ(element_offset(store, place.warp, place.lane, place.reg / 2, place.reg % 2),
                store.tile.offset(row, col));
    }
  }
}

}  // namespace
}  // namespace nautilus::layout

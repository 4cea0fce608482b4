// SPDX-License-Identifier: Apache-2.0
//
// The layouts of matrix instructions against the formulas of the PTX ISA, written out a second time
// as arithmetic on lane numbers, for every size the instructions have.
#include "layout/fragments.h"

#include <set>

#include <gtest/gtest.h>

#include "layout/convert.h"

namespace nautilus::layout {
namespace {

TEST(Fragments, AccumulatorIsThatOfWgmma) {
  for (int n = 8; n <= 256; n += 8) {
    const Layout layout = acc(n);
    ASSERT_EQ(layout.shape(), (std::vector<int>{64, n}));
    ASSERT_EQ(layout.registers(), n / 2);
    ASSERT_EQ(layout.threads(), 128);
    ASSERT_TRUE(layout.is_bijective());
    std::set<std::vector<int>> seen;
    for (int thread = 0; thread < 128; ++thread) {
      const int warp = thread / 32, lane = thread % 32, g = lane >> 2, t = lane & 3;
      for (int reg = 0; reg < n / 2; ++reg) {
        const int row = 16 * warp + g + 8 * ((reg >> 1) & 1);
        const int col = 8 * (reg >> 2) + 2 * t + (reg & 1);
        const Place place = {0, warp, lane, reg};
        EXPECT_EQ(layout.coordinates_of(place), (std::vector<int>{row, col}));
        EXPECT_EQ(layout.owner_of({row, col}), place);
        seen.insert({row, col});
      }
    }
    ASSERT_EQ(seen.size(), static_cast<size_t>(64 * n));
  }
}

TEST(Fragments, OperandIsThatOfWgmma) {
  for (int k = 16; k <= 256; k += 16) {
    const Layout layout = afrag(k);
    ASSERT_EQ(layout.shape(), (std::vector<int>{64, k}));
    for (int thread = 0; thread < 128; ++thread) {
      const int warp = thread / 32, lane = thread % 32, g = lane >> 2, t = lane & 3;
      for (int slice = 0; slice < k / 16; ++slice) {
        // The four 32-bit registers of a slice: rows g, g+8, then the same 8 columns further on.
        for (int reg = 0; reg < 4; ++reg) {
          for (int half = 0; half < 2; ++half) {
            const int row = 16 * warp + g + 8 * (reg & 1);
            const int col = 16 * slice + 8 * (reg >> 1) + 2 * t + half;
            EXPECT_EQ(layout.owner_of({row, col}),
                      (Place{0, warp, lane, 2 * (4 * slice + reg) + half}));
          }
        }
      }
    }
  }
}

TEST(Fragments, AccumulatorBecomesOperandForFree) {
  for (int n = 16; n <= 256; n += 16) {
    const Conversion conversion = convert_kind(acc(n), afrag(n));
    ASSERT_EQ(conversion.kind, ConvertKind::Free) << n;
    // Operand register 4i + r takes accumulator elements 8i + 2r and 8i + 2r + 1.
    for (int slice = 0; slice < n / 16; ++slice) {
      for (int reg = 0; reg < 4; ++reg) {
        for (int half = 0; half < 2; ++half) {
          EXPECT_EQ(conversion.source[static_cast<size_t>(2 * (4 * slice + reg) + half)],
                    8 * slice + 2 * reg + half);
        }
      }
    }
    EXPECT_EQ(acc(n), afrag(n));
  }
}

TEST(Fragments, EightyColumns) {
  EXPECT_EQ(to_text(acc(80)),
            "0: warp 4*16, reg 2*8@2, lane 8*1@4; 1: reg 10*8@4, lane 4*2, reg 2*1");
  EXPECT_EQ(acc(80).registers(), 40);
  EXPECT_EQ(convert_kind(acc(80), afrag(80)).kind, ConvertKind::Free);
}

TEST(Fragments, RowStatistics) {
  EXPECT_EQ(to_text(row_stats()), "0: warp 4*16, reg 2*8, lane 8*1@4; copies: lane 4");
  for (int n = 8; n <= 256; n += 8) {
    const Reduction reduction = drop_axis(acc(n), 1);
    EXPECT_EQ(reduction.result, row_stats());
    EXPECT_EQ(reduction.lane_masks, (std::vector<int>{1, 2}));
  }
}

// A group of 16 rows is one warp: what a condition "per 16 rows" needs to be uniform.
TEST(Fragments, SixteenRowsAreAWarp) {
  for (int row = 0; row < 64; ++row) EXPECT_EQ(acc(80).owner_of({row, 7}).warp, row / 16);
}

TEST(Fragments, WarpFragmentsOfMma) {
  const Layout c = mma_acc(8), a = mma_afrag(16), b = mma_bfrag(16, 8);
  EXPECT_EQ(c.shape(), (std::vector<int>{16, 8}));
  EXPECT_EQ(a.shape(), (std::vector<int>{16, 16}));
  EXPECT_EQ(b.shape(), (std::vector<int>{16, 8}));
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane >> 2, t = lane & 3;
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(c.coordinates_of({0, 0, lane, i}),
                (std::vector<int>{g + 8 * (i / 2), 2 * t + i % 2}));
      EXPECT_EQ(b.coordinates_of({0, 0, lane, i}),
                (std::vector<int>{2 * t + i % 2 + 8 * (i / 2), g}));
    }
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(a.coordinates_of({0, 0, lane, i}),
                (std::vector<int>{g + 8 * (i / 2 % 2), 2 * t + i % 2 + 8 * (i / 4)}));
    }
  }
  for (int n = 8; n <= 256; n += 8) {
    for (int k = 16; k <= 64; k += 16) {
      EXPECT_EQ(mma_bfrag(k, n).registers(), k * n / 32);
      EXPECT_TRUE(mma_bfrag(k, n).is_bijective());
    }
  }
}

TEST(Fragments, TwoWarpGroupsStackTheirRows) {
  const Layout tile = acc(128).repeat(0, 2, Owner::WarpGroup);
  EXPECT_EQ(tile.shape(), (std::vector<int>{128, 128}));
  EXPECT_EQ(tile.owner_of({64 + 17, 3}).warp_group, 1);
  EXPECT_EQ(tile.owner_of({64 + 17, 3}).warp, 1);
  EXPECT_EQ(tile.registers(), 64);
}

}  // namespace
}  // namespace nautilus::layout

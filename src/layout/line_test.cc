// SPDX-License-Identifier: Apache-2.0
#include "layout/line.h"

#include <gtest/gtest.h>

#include "layout/convert.h"
#include "layout/fragments.h"

namespace nautilus::layout {
namespace {

TEST(Line, PlacesNeighboursInAThread) {
  for (const auto& [n, width] : {std::pair{4096, 8}, {16384, 8}, {4096, 4}, {1024, 8}, {128, 1}}) {
    const Layout l = line(n, width);
    EXPECT_TRUE(l.is_bijective());
    EXPECT_EQ(l.threads(), 128);
    EXPECT_EQ(l.registers(), n / 128);
    for (int col = 0; col < n; ++col) {
      const Place p = l.owner_of({col});
      const int thread = col / width % 128;
      EXPECT_EQ(p.warp, thread / 32);
      EXPECT_EQ(p.lane, thread % 32);
      EXPECT_EQ(p.reg, col / (128 * width) * width + col % width);
    }
  }
  EXPECT_EQ(to_text(line(4096, 8)), "0: reg 4*1024@8, warp 4*256, lane 32*8, reg 8*1");
}

TEST(Line, ReducesToOneValueInEveryThread) {
  for (const auto& [n, width] : {std::pair{4096, 8}, {1024, 8}, {512, 4}}) {
    const Reduction r = drop_axis(line(n, width), 0);
    EXPECT_EQ(r.result, line_value());
    EXPECT_EQ(r.lane_masks.size(), 5U);
    EXPECT_EQ(r.warps, 4);
    ASSERT_EQ(r.sources.size(), 1U);
    EXPECT_EQ(r.sources[0].size(), static_cast<size_t>(n / 128));
  }
  EXPECT_EQ(line_value().copies(), 128);
  EXPECT_EQ(line_value().registers(), 1);
}

TEST(Line, IsSharedByLanes) {
  for (const auto& [n, width, lanes] :
       {std::tuple{64, 4, 8}, {64, 8, 4}, {96, 1, 16}, {256, 4, 32}, {8, 4, 1}}) {
    const Layout l = line(n, width, lanes);
    EXPECT_TRUE(l.is_bijective());
    EXPECT_EQ(l.threads(), lanes);
    EXPECT_EQ(l.registers(), n / lanes);
    for (int col = 0; col < n; ++col) {
      const Place p = l.owner_of({col});
      EXPECT_EQ(p.warp, 0);
      EXPECT_EQ(p.lane, col / width % lanes);
      EXPECT_EQ(p.reg, col / (lanes * width) * width + col % width);
    }
    const Reduction r = drop_axis(l, 0);
    EXPECT_EQ(r.result, line_value(lanes));
    EXPECT_EQ(r.warps, 1);
    EXPECT_EQ(line_value(lanes).copies(), lanes);
  }
}

// Register width*r + c of the layout is neighbour c of piece r.
void expect_pieces(const Layout& layout, int width) {
  const auto p = pieces(layout, width);
  ASSERT_TRUE(p.has_value());
  EXPECT_EQ(p->layout.registers() * width, layout.registers());
  for (int warp = 0; warp < layout.extent(Owner::Warp); ++warp) {
    for (int lane = 0; lane < layout.extent(Owner::Lane); ++lane) {
      for (int r = 0; r < layout.registers(); ++r) {
        std::vector<int> want = p->layout.coordinates_of({0, warp, lane, r / width});
        int& along = want[static_cast<size_t>(p->axis)];
        along = along * width + r % width;
        EXPECT_EQ(layout.coordinates_of({0, warp, lane, r}), want);
      }
    }
  }
}

TEST(Line, Pieces) {
  expect_pieces(line(4096, 8), 8);
  expect_pieces(line(1024, 8), 8);
  expect_pieces(line(4096, 8), 4);
  expect_pieces(line(512, 4), 4);
  expect_pieces(acc(16), 2);
  EXPECT_EQ(pieces(line(4096, 8), 8)->layout, line(512, 1));
  EXPECT_FALSE(pieces(line(512, 4), 8).has_value());
  EXPECT_FALSE(pieces(acc(16), 8).has_value());
  EXPECT_FALSE(pieces(line_value(), 8).has_value());
}

}  // namespace
}  // namespace nautilus::layout

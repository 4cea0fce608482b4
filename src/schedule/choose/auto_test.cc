// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/auto.h"

#include <gtest/gtest.h>

#include "target/target.h"

namespace nautilus::schedule {
namespace {

Kernel kernel_with(int64_t groups, int64_t step, int64_t column) {
  Kernel k;
  k.sizes.warp_groups = groups;
  k.sizes.rows = 64;
  k.sizes.step = step;
  k.sizes.column = column;
  return k;
}

TEST(Retreat, PartsAreGivenUpFirst) {
  Kernel k = kernel_with(2, 64, 0);
  k.split.parts = 4;
  ASSERT_TRUE(k.split.is_on());
  Refusal r = next_retreat({}, k, target::default_target(), "no form");
  EXPECT_EQ(r.given_up, Retreat::Parts);
  EXPECT_EQ(r.why, "no form");
  k.split = {};
  r = next_retreat(r, k, target::default_target(), "no form");
  EXPECT_EQ(r.given_up, Retreat::Alternatives);
  EXPECT_FALSE(r.sizes);  // those tried first
  // A kernel that never had parts begins there.
  EXPECT_EQ(next_retreat({}, k, target::default_target(), "").given_up, Retreat::Alternatives);
}

// Every tile is smaller than the one before; then the fusion becomes smaller, and its tiles begin
// again; then there is nothing left.
TEST(Retreat, TilesBecomeSmallerUntilNothingIsLeft) {
  Refusal r{Retreat::Alternatives, {}, ""};
  Kernel k = kernel_with(3, 128, 256);
  std::vector<Retreat> steps;
  const auto elements = [](const TileConfig& s) {
    return s.warp_groups * s.rows * s.step * s.column;
  };
  while (r.given_up != Retreat::Kernel) {
    r = next_retreat(r, k, target::default_target(), "");
    steps.push_back(r.given_up);
    ASSERT_LT(steps.size(), 20u);
    if (!r.sizes) {
      k = kernel_with(1, 64, 128);  // what the smaller group is tried with
      continue;
    }
    EXPECT_LT(elements(*r.sizes), elements(k.sizes));
    k.sizes = *r.sizes;
  }
  // Two groups, steps of 64, columns of 128 and 64, one group; alone, columns of 64.
  const std::vector<Retreat> expected = {Retreat::Tiles,   Retreat::Tiles, Retreat::Tiles,
                                         Retreat::Tiles,   Retreat::Tiles, Retreat::Company,
                                         Retreat::Company, Retreat::Kernel};
  EXPECT_EQ(steps, expected);
}

// A kernel that lost other members for another reason keeps its sizes: the retreat continues.
TEST(Retreat, EndsWhateverTheKernelHas) {
  const Kernel k = kernel_with(3, 128, 256);
  Refusal r;
  int steps = 0;
  for (; r.given_up != Retreat::Kernel && steps < 50; ++steps)
    r = next_retreat(r, k, target::default_target(), "");
  EXPECT_LT(steps, 50);
}

}  // namespace
}  // namespace nautilus::schedule

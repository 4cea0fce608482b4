// SPDX-License-Identifier: Apache-2.0
#include "tune/search/recorded_space.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nautilus::tune {
namespace {

// Schedules of two lines; the best is in the middle.
std::vector<Trial> made_up() {
  std::vector<Trial> out;
  for (int x = 0; x < 8; ++x) {
    for (int y = 0; y < 8; ++y) {
      Trial t;
      t.schedule = fmt::format("schedule @p\nkernel a\n  tile m {}; tile n {}\n", x, y);
      t.verdict = Verdict::Timed;
      t.times = {1.0 + (x - 5) * (x - 5) + (y - 3) * (y - 3)};
      t.features.assign(feature_names().size(), 0);
      t.features[0] = std::abs(x - 5);
      t.features[1] = std::abs(y - 3);
      t.date = fmt::format("2026-01-01T00:{:02}:{:02}Z", x, y);
      t.predicted = x == y ? 100 - x : 0;
      out.push_back(t);
    }
  }
  return out;
}

TEST(RecordedSpace, HasWhatWasTimed) {
  std::vector<Trial> trials = made_up();
  Trial again = trials[0];
  again.times = {3};
  trials.push_back(again);  // the same schedule: its times count together
  trials.push_back(trials[9]);
  trials.back().verdict = Verdict::Wrong;  // disqualifies the schedule
  RecordedSpace space(trials);
  EXPECT_EQ(space.size(), 63u);
  EXPECT_EQ(space.best(), 1);
  EXPECT_EQ(space.trial(trials[0].schedule).times.size(), 2u);
  const auto seeds = space.seeds();
  ASSERT_EQ(seeds.size(), 7u);
  EXPECT_EQ(seeds[0].schedule, trials[0].schedule);  // timed first
  EXPECT_LT(seeds[1].predicted, seeds[2].predicted);
  EXPECT_NE(space.neighbours(trials[0].schedule)[0].schedule.find("tile"), std::string::npos);
}

TEST(RecordedSpace, NeighboursDifferInOneLine) {
  RecordedSpace space(made_up());
  const auto near = space.neighbours(made_up()[0].schedule);  // 0, 0
  for (size_t k = 0; k < 14; ++k) {
    const bool is_one = near[k].schedule.find("tile m 0;") != std::string::npos ||
                        near[k].schedule.find("tile n 0\n") != std::string::npos;
    EXPECT_TRUE(is_one) << near[k].schedule;
  }
}

// One that differs from all others in many lines is among the nearest of none of them.
TEST(RecordedSpace, ASearchReachesWhatIsFarFromAllOthers) {
  std::vector<Trial> trials = made_up();
  Trial far = trials[0];
  far.schedule = "schedule @p\nkernel b\n  tile q 1; tile r 2; tile s 3\n";
  far.times = {0.5};
  far.date = "2026-01-01T00:09:09Z";
  far.predicted = 0;
  trials.push_back(far);
  RecordedSpace space(trials);
  for (const std::string_view name : {"evolutionary", "random", "exhaustive"})
    EXPECT_NEAR(regret_of(name, space, {}, 65, 2).after.back(), 0, 1e-9) << name;
}

TEST(RecordedSpace, RegretFallsToNothing) {
  RecordedSpace space(made_up());
  for (const std::string_view name : {"learned", "evolutionary", "random", "exhaustive"}) {
    const Regret r = regret_of(name, space, {}, 64, 3);
    ASSERT_EQ(r.after.size(), 64u);
    for (size_t k = 1; k < r.after.size(); ++k) EXPECT_LE(r.after[k], r.after[k - 1] + 1e-9);
    EXPECT_NEAR(r.after.back(), 0, 1e-9) << name;
  }
  // The cost model's own candidates do not have the best.
  EXPECT_GT(regret_of("model", space, {}, 64, 1).after.back(), 0);
}

}  // namespace
}  // namespace nautilus::tune

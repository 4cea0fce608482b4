// SPDX-License-Identifier: Apache-2.0
#include "tune/work/pace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nautilus::tune {
namespace {

Trial at(int minute, int second, const std::string& machine = "a device") {
  Trial t;
  t.problem.machine = machine;
  t.date = fmt::format("2026-11-17T07:{:02}:{:02}Z", minute, second);
  return t;
}

TEST(Pace, IsTheMeanOfTimesBetweenTrials) {
  std::vector<Trial> trials;
  EXPECT_FALSE(seconds_of_a_trial(trials, "a device"));
  for (int k = 0; k < 8; ++k) trials.push_back(at(0, 2 * k));
  EXPECT_EQ(seconds_of_a_trial(trials, "a device"), 2);
  EXPECT_FALSE(seconds_of_a_trial(trials, "another"));
  trials.push_back(at(0, 1, "another"));  // does not count
  trials.push_back(at(40, 0));            // another search, much later
  EXPECT_EQ(seconds_of_a_trial(trials, "a device"), 2);
  trials.push_back(at(0, 18));
  trials.back().date = "yesterday";
  EXPECT_EQ(seconds_of_a_trial(trials, "a device"), 2);
}

TEST(Pace, FewTrialsSayNothing) {
  std::vector<Trial> trials;
  for (int k = 0; k < 7; ++k) trials.push_back(at(0, k));
  EXPECT_FALSE(seconds_of_a_trial(trials, "a device"));
}

}  // namespace
}  // namespace nautilus::tune

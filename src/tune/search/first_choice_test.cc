// SPDX-License-Identifier: Apache-2.0
#include "tune/search/first_choice.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace nautilus::tune {
namespace {

// Schedules with the predicted time times a factor of feature 2, `weight` powers of two for each
// unit.
void add_problem(std::vector<Trial>& out, const std::string& equations, int64_t size, double weight,
                 uint64_t seed) {
  base::Random random(seed);
  for (int k = 0; k < 24; ++k) {
    Trial t;
    t.problem = {equations, {{"M", size}}, "sm_90a", "a device"};
    t.program = equations;
    t.schedule = std::to_string(k);
    t.verdict = Verdict::Timed;
    t.features.assign(feature_names().size(), 1);
    t.features[2] = static_cast<double>(random.integer(0, 8));
    t.predicted = static_cast<double>(random.integer(1000, 1400));
    t.times = {t.predicted * std::exp2(weight * t.features[2])};
    out.push_back(t);
  }
}

TEST(FirstChoice, CorrectionOfOtherProgramsHelpsWhereTheModelMissesTheSame) {
  std::vector<Trial> trials;
  add_problem(trials, "a", 64, 0.4, 1);
  add_problem(trials, "b", 64, 0.4, 2);
  add_problem(trials, "c", 64, 0.4, 3);
  double predicted = 0, held_out = 0, same = 0;
  for (const FirstChoice& c : first_choices(trials, 8)) {
    EXPECT_EQ(c.schedules, 24u);
    predicted += c.predicted;
    held_out += c.held_out;
    same += c.same;
  }
  // Flat where samples are few, so not exact.
  EXPECT_GT(predicted, 0.1);
  EXPECT_LT(held_out, predicted / 2);
  EXPECT_LT(same, predicted / 2);
}

TEST(FirstChoice, WhatIsHeldOutTeachesNothing) {
  std::vector<Trial> trials;
  add_problem(trials, "a", 64, 0.4, 1);
  add_problem(trials, "a", 128, 0.4, 2);
  const auto found = first_choices(trials, 8);
  ASSERT_EQ(found.size(), 2u);
  double predicted = 0, same = 0;
  for (const FirstChoice& c : found) {
    predicted += c.predicted;
    same += c.same;
    EXPECT_EQ(c.held_out, c.predicted);
  }
  EXPECT_LT(same, predicted / 2);
}

TEST(FirstChoice, ProblemsWithoutPredictionsDoNotCount) {
  std::vector<Trial> trials;
  add_problem(trials, "a", 64, 0.4, 1);
  for (Trial& t : trials) t.predicted = 0;
  add_problem(trials, "b", 64, 0.4, 1);
  for (Trial& t : trials) t.problem.machine = t.program == "b" ? "emulator" : t.problem.machine;
  EXPECT_TRUE(first_choices(trials, 1).empty());
}

}  // namespace
}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
#include "tune/report/decision_effects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nautilus::tune {
namespace {

// A schedule of one kernel along rows.
Winner along_rows(std::string lines, double median) {
  Winner w;
  w.schedule = fmt::format("schedule @p version 2 equations 0123\nkernel Y rows\n  {}\n", lines);
  w.median = median;
  return w;
}

DecisionEffects effects_of(const std::vector<Winner>& all, size_t winner, size_t choice) {
  return decision_effects(all, all[winner].schedule, all[choice].schedule);
}

const DecisionEffect* find_effect(const DecisionEffects& all, std::string_view decision) {
  for (const DecisionEffect& e : all.effects) {
    if (e.decision == decision) return &e;
  }
  return nullptr;
}

TEST(DecisionEffects, TheFastestWithAndWithoutAValue) {
  const auto all = effects_of({along_rows("columns 512 tuned; vector 8 tuned; lanes 4", 10),
                               along_rows("columns 512 tuned; vector 4; lanes 4", 11),
                               along_rows("columns 1024; vector 4; lanes 4", 15),
                               along_rows("columns 256 tuned; vector 8 tuned; lanes 4", 13)},
                              0, 2);
  EXPECT_EQ(all.unread, 0u);
  ASSERT_EQ(all.effects.size(), 2u);
  // The larger effect comes first.
  const DecisionEffect& columns = all.effects[0];
  EXPECT_EQ(columns.kernel, "Y");
  EXPECT_EQ(columns.decision, "columns");
  EXPECT_EQ(columns.value, "512");
  EXPECT_EQ(columns.choice, "1024");
  EXPECT_EQ(columns.with, 2u);
  EXPECT_EQ(columns.without, 2u);
  EXPECT_DOUBLE_EQ(columns.best_with, 10);
  EXPECT_EQ(columns.best_without.value, "256");
  EXPECT_NEAR(columns.change(), 0.3, 1e-12);
  EXPECT_EQ(columns.best_without.further, 0u);
  const DecisionEffect& vector = all.effects[1];
  EXPECT_EQ(vector.decision, "vector");
  EXPECT_EQ(vector.best_without.value, "4");
  EXPECT_NEAR(vector.change(), 0.1, 1e-12);
  ASSERT_TRUE(vector.alone);
  EXPECT_DOUBLE_EQ(vector.alone->median, 11);
  EXPECT_EQ(all.untried, std::vector<std::string>{"Y lanes"});
}

TEST(DecisionEffects, OtherDifferencesAreCounted) {
  const auto all = effects_of({along_rows("columns 512 tuned; vector 8 tuned", 10),
                               along_rows("columns 1024; vector 4", 15)},
                              0, 1);
  const DecisionEffect* columns = find_effect(all, "columns");
  ASSERT_TRUE(columns);
  EXPECT_EQ(columns->best_without.further, 1u);
  EXPECT_FALSE(columns->alone);
}

TEST(DecisionEffects, WhatRulesTookFollowsFromTheRest) {
  const auto all = effects_of({along_rows("columns 512 tuned; threads 128", 10),
                               along_rows("columns 1024; threads 256", 15)},
                              0, 1);
  ASSERT_EQ(all.effects.size(), 1u);
  EXPECT_EQ(all.effects[0].decision, "columns");
  EXPECT_EQ(all.effects[0].best_without.further, 0u);
  EXPECT_TRUE(all.effects[0].alone);
}

// Which of several alternatives ran is not known: nothing is said about values that both have.
TEST(DecisionEffects, AlternativesThatMayBeTheSameAreNotCompared) {
  const auto all =
      effects_of({along_rows("columns 512 tuned; vector 8 tuned", 10),
                  along_rows("columns 512; vector 4\nor\n  columns 1024; vector 2", 15)},
                 0, 1);
  EXPECT_FALSE(find_effect(all, "columns"));
  const DecisionEffect* vector = find_effect(all, "vector");
  ASSERT_TRUE(vector);
  EXPECT_EQ(vector->best_without.value, "4 / 2");
  EXPECT_EQ(vector->best_without.further, 1u);  // columns, perhaps
}

// With equally many, what differs is named.
TEST(DecisionEffects, AlternativesAreComparedOneByOne) {
  const auto all = effects_of({along_rows("columns 512\nor\n  columns 1024 tuned; vector 2", 10),
                               along_rows("columns 512\nor\n  columns 2048; vector 2", 15)},
                              0, 1);
  ASSERT_EQ(all.effects.size(), 1u);
  EXPECT_EQ(all.effects[0].value, "512 / 1024");
  EXPECT_EQ(all.effects[0].best_without.value, "alternative 2: 2048, not 1024");
  EXPECT_EQ(all.effects[0].choice, "alternative 2: 2048, not 1024");
}

TEST(DecisionEffects, SubjectsBelongToTheDecision) {
  const auto all = effects_of({along_rows("columns 512; keep A on tuned; keep B off", 10),
                               along_rows("columns 512; keep A off; keep B off", 12),
                               along_rows("columns 512; keep A on tuned; keep B on tuned", 11)},
                              0, 1);
  ASSERT_EQ(all.effects.size(), 2u);
  EXPECT_EQ(all.effects[0].decision, "keep A");
  EXPECT_EQ(all.effects[1].decision, "keep B");
  EXPECT_FALSE(all.effects[1].choice);  // the winner has what the compiler chose
}

TEST(DecisionEffects, OtherKernelsAreOneDecision) {
  Winner other;
  other.schedule =
      "schedule @p version 2 equations 0123\nkernel Y points\n  threads 128 tuned\n"
      "kernel Z points\n  threads 128\n";
  other.median = 14;
  const auto all = decision_effects({along_rows("columns 512 tuned", 10), other},
                                    along_rows("columns 512 tuned", 10).schedule, std::nullopt);
  const DecisionEffect* kernels = find_effect(all, "kernels");
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels->value, "Y rows");
  EXPECT_EQ(kernels->best_without.value, "Y points, Z points");
}

TEST(DecisionEffects, TextsThatAreNoScheduleAreCounted) {
  Winner other;
  other.schedule = "no schedule";
  other.median = 14;
  const auto all = effects_of({along_rows("columns 512", 10), other}, 0, 0);
  EXPECT_EQ(all.unread, 1u);
  EXPECT_TRUE(all.effects.empty());
  EXPECT_TRUE(effects_of({other, other}, 0, 1).effects.empty());
}

}  // namespace
}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
#include "tune/learn/rank_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace nautilus::tune {
namespace {

// Times that two of the features decide; each problem has a scale of its own.
std::vector<Sample> made_up(size_t problem, double scale, int count, uint64_t seed) {
  base::Random random(seed);
  std::vector<Sample> out;
  for (int k = 0; k < count; ++k) {
    Features f(feature_names().size(), 3);
    f[2] = static_cast<double>(random.integer(0, 8));
    f[7] = static_cast<double>(random.integer(0, 8));
    out.push_back({f, scale * std::exp2(0.3 * f[2] - 0.2 * f[7]), problem});
  }
  return out;
}

// Share of pairs with different times that are in the right order.
double right_order(const RankModel& model, const std::vector<Sample>& samples) {
  double right = 0, all = 0;
  for (const Sample& a : samples) {
    for (const Sample& b : samples) {
      if (a.time >= b.time) continue;
      all += 1;
      right += model.score(a.features) < model.score(b.features) ? 1 : 0;
    }
  }
  return right / all;
}

void learns_from_other_problems(RankModel& model) {
  std::vector<Sample> samples = made_up(0, 1, 40, 1);
  for (const Sample& s : made_up(1, 5000, 40, 2)) samples.push_back(s);
  ASSERT_TRUE(model.fit(samples));
  EXPECT_GT(right_order(model, made_up(2, 0.01, 30, 3)), 0.9);
}

TEST(RankModel, ALineLearnsFromOtherProblems) { learns_from_other_problems(*make_linear_model()); }

TEST(RankModel, TreesLearnFromOtherProblems) {
  const auto model = make_boosted_model();
  if (!model) GTEST_SKIP() << "XGBoost is not installed";
  learns_from_other_problems(*model);
}

TEST(RankModel, WhatSaysNothingIsNotLearned) {
  for (const auto& model : {make_linear_model(), make_rank_model()}) {
    EXPECT_FALSE(model->fit({}));
    EXPECT_FALSE(model->fit(made_up(0, 1, 2, 1)));
    std::vector<Sample> mixed = made_up(0, 1, 20, 1);
    mixed.back().features.pop_back();  // of another version
    EXPECT_FALSE(model->fit(mixed));
  }
  std::vector<Sample> alike = made_up(0, 1, 20, 1);
  for (Sample& s : alike) s = alike[0];
  EXPECT_FALSE(make_linear_model()->fit(alike));
}

}  // namespace
}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
#include "driver/run/ranking.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

std::vector<Prediction> predictions(std::initializer_list<std::pair<double, double>> pairs) {
  std::vector<Prediction> out;
  for (const auto& [predicted, measured] : pairs) out.push_back({"", predicted, measured});
  return out;
}

TEST(Ranking, CorrelationIsThatOfTheOrder) {
  EXPECT_DOUBLE_EQ(rank_correlation(predictions({{1, 10}, {2, 11}, {30, 12}})), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(predictions({{3, 10}, {2, 11}, {1, 12}})), -1);
  // One exchange of neighbours among four: 1 - 6 * 2 / (4 * 15).
  EXPECT_DOUBLE_EQ(rank_correlation(predictions({{1, 2}, {2, 1}, {3, 3}, {4, 4}})), 0.8);
  // Equal predictions do not count.
  EXPECT_DOUBLE_EQ(rank_correlation(predictions({{1, 2}, {1, 1}})), 0);
}

TEST(Ranking, LossIsOfTheFirstChoice) {
  EXPECT_DOUBLE_EQ(loss_of_first(predictions({{1, 4}, {2, 2}, {3, 8}})), 1);
  EXPECT_DOUBLE_EQ(loss_of_first(predictions({{1, 2}, {2, 4}})), 0);
}

TEST(Ranking, MeanAndWorstOverProblems) {
  RankingOf all;
  all.add("one way", predictions({{1, 1}}));
  all.add("good", predictions({{1, 1}, {2, 2}}));
  all.add("bad", predictions({{1, 3}, {2, 2}}));
  const Ranking r = all.result();
  EXPECT_EQ(r.problems, 2u);
  EXPECT_DOUBLE_EQ(r.correlation, 0);
  EXPECT_DOUBLE_EQ(r.loss, 0.25);
  EXPECT_DOUBLE_EQ(r.worst, 0.5);
  EXPECT_EQ(r.worst_name, "bad");
}

}  // namespace
}  // namespace nautilus::driver

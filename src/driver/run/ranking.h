// SPDX-License-Identifier: Apache-2.0
// How well predicted times order measured ones, which is the purpose of a cost model.
#pragma once

#include <string>
#include <vector>

namespace nautilus::driver {

// One kernel of a problem.
struct Prediction {
  std::string name;
  double predicted = 0;  // in any unit
  double measured = 0;   // in any unit
};

// Spearman's rank correlation of both; 1 if both orders are the same. Equal values share their
// ranks.
double rank_correlation(const std::vector<Prediction>& predictions);

// How much longer the kernel that is predicted to be best takes than the best one: 0.02 is 2 %.
double loss_of_first(const std::vector<Prediction>& predictions);

// Over several problems.
struct Ranking {
  size_t problems = 0;
  double correlation = 0;  // mean
  double loss = 0;         // mean
  double worst = 0;        // greatest loss
  std::string worst_name;  // its problem
};

class RankingOf {
 public:
  // Problems with fewer than two kernels say nothing.
  void add(const std::string& problem, const std::vector<Prediction>& predictions);
  Ranking result() const;

 private:
  Ranking sum_;
};

}  // namespace nautilus::driver

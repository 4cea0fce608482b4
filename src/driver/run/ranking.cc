// SPDX-License-Identifier: Apache-2.0
#include "driver/run/ranking.h"

#include <algorithm>
#include <cmath>

namespace nautilus::driver {
namespace {

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> out;
  for (double v : values) {
    double below = 0;
    double equal = 0;
    for (double other : values) {
      below += other < v ? 1 : 0;
      equal += other == v ? 1 : 0;
    }
    out.push_back(below + (equal - 1) / 2);
  }
  return out;
}

}  // namespace

double rank_correlation(const std::vector<Prediction>& predictions) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const Prediction& w : predictions) {
    predicted.push_back(w.predicted);
    measured.push_back(w.measured);
  }
  const std::vector<double> p = ranks(predicted);
  const std::vector<double> m = ranks(measured);
  const double mean = (static_cast<double>(predictions.size()) - 1) / 2;
  double both = 0;
  double of_p = 0;
  double of_m = 0;
  for (size_t k = 0; k < predictions.size(); ++k) {
    both += (p[k] - mean) * (m[k] - mean);
    of_p += (p[k] - mean) * (p[k] - mean);
    of_m += (m[k] - mean) * (m[k] - mean);
  }
  return of_p == 0 || of_m == 0 ? 0 : both / std::sqrt(of_p * of_m);
}

double loss_of_first(const std::vector<Prediction>& predictions) {
  const auto first = std::min_element(
      predictions.begin(), predictions.end(),
      [](const Prediction& a, const Prediction& b) { return a.predicted < b.predicted; });
  const auto best = std::min_element(
      predictions.begin(), predictions.end(),
      [](const Prediction& a, const Prediction& b) { return a.measured < b.measured; });
  return first->measured / best->measured - 1;
}

void RankingOf::add(const std::string& problem, const std::vector<Prediction>& predictions) {
  if (predictions.size() < 2) return;
  ++sum_.problems;
  sum_.correlation += rank_correlation(predictions);
  const double loss = loss_of_first(predictions);
  sum_.loss += loss;
  if (sum_.worst_name.empty() || loss > sum_.worst) {
    sum_.worst = loss;
    sum_.worst_name = problem;
  }
}

Ranking RankingOf::result() const {
  Ranking out = sum_;
  if (out.problems == 0) return out;
  out.correlation /= static_cast<double>(out.problems);
  out.loss /= static_cast<double>(out.problems);
  return out;
}

}  // namespace nautilus::driver

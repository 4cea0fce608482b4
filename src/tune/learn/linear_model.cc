// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "tune/learn/rank_model.h"

namespace nautilus::tune {
namespace {

constexpr size_t kLeastOfLine = 4;
constexpr double kPenalty = 1.0;  // of a weight, in samples; features have variance 1

// Ridge regression of log2(time). Features and times are relative to the mean of their problem: the
// overall time of a problem says nothing about its schedules.
class LinearModel final : public RankModel {
 public:
  bool fit(const std::vector<Sample>& samples) override {
    weights_.clear();
    if (samples.size() < kLeastOfLine) return false;
    const size_t n = samples[0].features.size();
    struct Mean {
      Features features;
      double time = 0;
      double count = 0;
    };
    std::map<size_t, Mean> means;
    for (const Sample& s : samples) {
      if (s.features.size() != n) return false;
      Mean& m = means[s.problem];
      m.features.resize(n);
      for (size_t k = 0; k < n; ++k) m.features[k] += s.features[k];
      m.time += std::log2(s.time);
      m.count += 1;
    }
    std::vector<Features> rows;
    std::vector<double> times;
    Features spread(n);
    for (const Sample& s : samples) {
      const Mean& m = means[s.problem];
      Features row(n);
      for (size_t k = 0; k < n; ++k) {
        row[k] = s.features[k] - m.features[k] / m.count;
        spread[k] += row[k] * row[k];
      }
      rows.push_back(std::move(row));
      times.push_back(std::log2(s.time) - m.time / m.count);
    }
    scale_.assign(n, 0);
    for (size_t k = 0; k < n; ++k) {
      const double deviation = std::sqrt(spread[k] / static_cast<double>(rows.size()));
      if (deviation > 1e-9) scale_[k] = 1 / deviation;
    }
    for (Features& row : rows) {
      for (size_t k = 0; k < n; ++k) row[k] *= scale_[k];
    }
    return solve(rows, times);
  }

  double score(const Features& features) const override {
    double sum = 0;
    for (size_t k = 0; k < std::min(weights_.size(), features.size()); ++k)
      sum += weights_[k] * scale_[k] * features[k];
    return sum;
  }

 private:
  // The normal equations, by elimination: they are positive definite with the penalty. Most columns
  // are the same in all samples (a program has few of all decisions) and stay out.
  bool solve(const std::vector<Features>& rows, const std::vector<double>& times) {
    std::vector<size_t> used;
    for (size_t k = 0; k < scale_.size(); ++k) {
      if (scale_[k] > 0) used.push_back(k);
    }
    const size_t n = used.size();
    std::vector<std::vector<double>> a(n, std::vector<double>(n + 1));
    for (size_t k = 0; k < n; ++k) a[k][k] = kPenalty;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (size_t i = 0; i < n; ++i) {
        const double x = rows[r][used[i]];
        for (size_t j = 0; j < n; ++j) a[i][j] += x * rows[r][used[j]];
        a[i][n] += x * times[r];
      }
    }
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) {
        const double factor = a[j][i] / a[i][i];
        for (size_t k = i; k <= n; ++k) a[j][k] -= factor * a[i][k];
      }
    }
    weights_.assign(scale_.size(), 0);
    double largest = 0;
    for (size_t i = n; i-- > 0;) {
      double value = a[i][n];
      for (size_t k = i + 1; k < n; ++k) value -= a[i][k] * weights_[used[k]];
      weights_[used[i]] = value / a[i][i];
      largest = std::max(largest, std::abs(weights_[used[i]]));
    }
    return std::isfinite(largest) && largest > 0;
  }

  std::vector<double> weights_;
  std::vector<double> scale_;
};

}  // namespace

std::unique_ptr<RankModel> make_linear_model() { return std::make_unique<LinearModel>(); }

std::unique_ptr<RankModel> make_rank_model() {
  auto boosted = make_boosted_model();
  return boosted ? std::move(boosted) : make_linear_model();
}

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// A learned order of schedules: which of several is likely faster, from trials of this problem and
// of others. Only the order within a problem counts; times of different problems are not compared.
#pragma once

#include <memory>

#include "tune/learn/features.h"

namespace nautilus::tune {

struct Sample {
  Features features;  // line_features.h
  double time = 0;
  size_t problem = 0;  // samples of one problem have one number
};

class RankModel {
 public:
  virtual ~RankModel() = default;
  // False if the samples are not enough: too few, or all equal.
  virtual bool fit(const std::vector<Sample>& samples) = 0;
  // Less is faster.
  virtual double score(const Features& features) const = 0;
};

// A line through logarithms of times, with a penalty that keeps it flat where samples are few.
std::unique_ptr<RankModel> make_linear_model();
// Boosted trees that learn pairs; null in a build without XGBoost.
std::unique_ptr<RankModel> make_boosted_model();
// The best model of this build.
std::unique_ptr<RankModel> make_rank_model();

}  // namespace nautilus::tune

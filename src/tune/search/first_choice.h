// SPDX-License-Identifier: Apache-2.0
// What the choice without tuning loses, from recorded trials: by the predicted time alone, and by
// the predicted time with a correction that was learned from trials of other problems.
#pragma once

#include "tune/learn/rank_model.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

struct FirstChoice {
  std::string program;
  std::map<std::string, int64_t> sizes;
  size_t schedules = 0;  // timed, with a predicted time
  // How much longer the choice takes than the best that was timed: 0.02 is 2 %.
  double predicted = 0;  // of the least predicted time
  double same = 0;       // corrected by all other problems
  double held_out = 0;   // corrected only by problems of other equations
};

// Of problems on devices with at least so many schedules that have predicted times and features.
std::vector<FirstChoice> first_choices(const std::vector<Trial>& trials, size_t least);

}  // namespace nautilus::tune

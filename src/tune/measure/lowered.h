// SPDX-License-Identifier: Apache-2.0
// A schedule before it is compiled: either refused by replay or a pass, or complete, with the
// kernels that run at the sizes of the problem and its features. A search decides with this what is
// worth a trial.
#pragma once

#include "tune/learn/features.h"
#include "tune/measure/measure.h"

namespace nautilus::tune {

struct Lowered {
  std::string schedule;  // with all its lines; empty if it is not legal
  std::string refusal;   // why not
  // A hash of the kernels that run at the sizes of the problem: schedules with equal kernels are
  // one candidate.
  std::string kernels;
  Running running;
  Features features;
};

// An empty schedule is the compiler's own choice.
Lowered lower(const Subject& subject, const std::string& schedule);

// One line of JSON.
std::string to_json(const Lowered& lowered);
std::optional<Lowered> lowered_of_json(std::string_view line);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// The winners of several sizes of a program as one text (schedule/text/sized_schedules.h): a launch
// uses the schedule of the nearest tuned sizes, or the compiler's own choice where none are near.
#pragma once

#include "ir/op.h"
#include "tune/records/database.h"

namespace nautilus::tune {

// The largest distance from tuned sizes, as the product of their ratios, at which the tuned
// schedule is used: twice in two dims, or four times in one. Beyond that, the numbers of tiles and
// of waves differ, and the cost model predicts better than the nearest measurement.
inline constexpr int64_t kNearFactor = 4;

struct TunedSizes {
  std::map<std::string, int64_t> sizes;
  std::string schedule;  // text of one schedule
};

// `own`: the compiler's choice. Winners in any order; equal schedules are in the text once. The
// text of one schedule if all are the same.
std::string tuned_plan_text(const std::string& own, const std::vector<TunedSizes>& winners);

// With the compiler's own choice for the program. Nothing if it has none.
std::optional<std::string> tuned_plan_text(const ir::Program& program,
                                           const std::vector<TunedSizes>& winners);

struct TunedPlan {
  std::string schedule;
  size_t shapes = 0;    // the sizes of its winners
  std::string machine;  // that they were measured on
};

// From trials on the device with the most trials that this version of the compiler still follows.
// Nothing if fewer than two sizes were tuned, or, with `error`, if the database cannot be read. A
// missing file is not an error.
std::optional<TunedPlan> tuned_plan_of(const ir::Program& program, const std::string& path,
                                       std::string* error);

}  // namespace nautilus::tune

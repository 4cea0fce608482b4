// SPDX-License-Identifier: Apache-2.0
// The schedules of a small sweep as texts that can be timed one by one.
#pragma once

#include "driver/load/load.h"

namespace nautilus::driver {

struct SweptSchedule {
  std::string name;  // the difference, in words
  // The schedule, with the name and the prediction as a comment above it. Empty if it was left out.
  std::string text;
  std::string why;  // it was left out
};

// What a sweep tries: everything, or only other kernels for statements without tiles
// (kernel_forms.h).
enum class SweepOf { Everything, Forms };

// Of a program of the math language, best predicted at its hints first, until `limit` schedules
// have kernels; schedules that were left out are included, with the reason. Nothing if something
// was reported.
std::optional<std::vector<SweptSchedule>> sweep(const ir::Program& program, SweepOf what,
                                                size_t limit, Unit& unit);

// The fillings of a schedule with holes (schedule/text/holes.h) in their order, and no prediction.
// `error` says why there are none, if nothing was reported.
std::optional<std::vector<SweptSchedule>> sweep_holes(const ir::Program& program,
                                                      std::string_view schedule, size_t limit,
                                                      Unit& unit, std::string* error);

// As text, one schedule after the other; `has_refused`: with the schedules that were left out, and
// why.
std::string sweep_text(const std::vector<SweptSchedule>& swept, bool has_refused);

}  // namespace nautilus::driver

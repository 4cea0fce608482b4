// SPDX-License-Identifier: Apache-2.0
// A small sweep: the schedules that differ from the first one in one kernel. A swept tile kernel
// has a single alternative, so that timing the schedule times that alternative.
#pragma once

#include "schedule/choose/candidates.h"
#include "schedule/text/schedule.h"

namespace nautilus::schedule {

struct Swept {
  Schedule schedule;
  std::string name;   // "192x128 3 groups", "64x128 1 group fill last": for people
  double cycles = 0;  // predicted at the hints, of all kernels
};

// Best predicted first; but of several similar ones all but the best come a little later, so that
// the first few differ enough to show where the prediction is wrong. `first`: the first schedule,
// with the kernels `kernels` of `rounded`. Does not check whether a kernel has a form on the
// device.
std::vector<Swept> sweep_candidates(const Schedule& first, const std::vector<Kernel>& kernels,
                                    const ir::Program& rounded, const Target& target,
                                    expr::ExprPool& pool);

// The same for lines about the program, and for kernels of rows, points and parts: one line of one
// alternative is changed or added. Costs are not predicted, and the legality of a line is not
// checked.
std::vector<Swept> sweep_program_lines(const Schedule& first);
std::vector<Swept> sweep_lines(const Schedule& first, const Target& target);

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
// A small sweep: the schedules that differ from the first one in one kernel. Of a tile kernel each
// has one in place of the several that a plan chooses between, so that timing it times that kernel.
#pragma once

#include "schedule/choose/candidates.h"
#include "schedule/text/schedule.h"

namespace nautilus::schedule {

struct Swept {
  Schedule schedule;
  std::string name;   // "192x128 3 groups", "64x128 1 group fill last": for people
  double cycles = 0;  // predicted at the hints, of all kernels
};

// Best predicted first, but of several that are similar all but the best come a little later, so
// that a few of them differ enough to tell where the prediction is wrong. `first`: the first
// schedule, whose kernels are `kernels` of `rounded`. Whether a kernel has a form on the device is
// not asked.
std::vector<Swept> sweep_candidates(const Schedule& first, const std::vector<Kernel>& kernels,
                                    const ir::Program& rounded, const Target& target,
                                    expr::ExprPool& pool);

// The same for lines about the program, and for kernels of rows, points and parts: one line of one
// alternative is another, or is there. Costs are not predicted, and whether a line is legal is not
// asked.
std::vector<Swept> sweep_program_lines(const Schedule& first);
std::vector<Swept> sweep_lines(const Schedule& first, const Target& target);

}  // namespace nautilus::schedule

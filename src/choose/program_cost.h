// SPDX-License-Identifier: Apache-2.0
// Predicted time of a scheduled program with kernels of all forms, to compare tile kernels with
// other forms of the same statements.
#pragma once

#include "ir/pass.h"
#include "schedule/apply/kernel.h"

namespace nautilus::choose {

// Cycles at the sizes of NestCosts, each relative to reading and writing the program's tensors once
// there. `kernels`: of its grid nests, chosen for the program `unscheduled`.
double program_cost(const ir::Program& scheduled, const std::vector<schedule::Kernel>& kernels,
                    const ir::Program& unscheduled, ir::PassContext& context);

// Whether the kernel's tiles are so empty, by known extents, that the comparison is worth its time:
// a full tile is far faster than other forms. Kernels with a split streamed axis are not compared,
// because they read memory at its full speed.
bool may_lose_to_loops(const schedule::Kernel& kernel, const target::Target& target);

}  // namespace nautilus::choose

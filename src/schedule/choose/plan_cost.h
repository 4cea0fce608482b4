// SPDX-License-Identifier: Apache-2.0
// Predicted time of all launches of a program at its hints, to choose between forms of the algebra.
#pragma once

#include <optional>

#include "schedule/apply/kernel.h"

namespace nautilus::schedule {

// Cycles at the hints; nothing if a size has no hint. A tile kernel counts with its fastest
// alternative by the cost model. Every tensor of the other statements counts as passing through
// memory once, because consecutive statements that read the same tensor become one kernel.
std::optional<double> plan_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                                  const Target& target, expr::ExprPool& pool);

// The same with the sizes and parts that each kernel has, which may come from lines of a schedule.
std::optional<double> own_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                                 const Target& target, expr::ExprPool& pool);

}  // namespace nautilus::schedule

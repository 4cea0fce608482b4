// SPDX-License-Identifier: Apache-2.0
// Predicted time of all that a program launches at its hints, to choose between forms of it.
#pragma once

#include <optional>

#include "schedule/apply/kernel.h"

namespace nautilus::schedule {

// Cycles at the hints; nothing if a size has none. Kernels of tiles by the cost model, the fastest
// of each. Of the statements beside them each tensor passes through memory once: neighbours that
// read the same become one kernel.
std::optional<double> plan_cycles(std::vector<Kernel> kernels, const ir::Program& program,
                                  const Target& target, expr::ExprPool& pool);

}  // namespace nautilus::schedule

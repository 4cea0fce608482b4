// SPDX-License-Identifier: Apache-2.0
// Which of several kernels that compute the same a plan launches.
//
//   let a_cost = ...                          predicted cycles
//   let b_cost = ...
//   launch a grid where(a_cost <= b_cost, n, 0)
//   launch b grid where(b_cost < a_cost, m, 0)
#pragma once

#include <utility>
#include <vector>

#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

// Kernels with their costs. Their launches run the cheapest alone, the first of equal ones; the
// costs are computed by the `let`s that are returned.
ir::Block launch_cheapest(std::vector<std::pair<LoweredKernel, expr::Expr>>& kernels,
                          FreshNames& names, expr::ExprPool& pool);

}  // namespace nautilus::lower

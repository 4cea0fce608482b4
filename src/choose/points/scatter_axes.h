// SPDX-License-Identifier: Apache-2.0
// Along which axis neighbouring threads have neighbouring terms of a scattered sum: where their
// reads and the elements that memory combines touch the fewest lines of the cache.
#pragma once

#include "lower/points/points_kernel.h"
#include "target/target.h"

namespace nautilus::choose {

// All axes, that one last.
ir::Axes scatter_axes(const lower::MapNest& terms, const target::NestCosts& costs,
                      expr::ExprPool& pool);

}  // namespace nautilus::choose

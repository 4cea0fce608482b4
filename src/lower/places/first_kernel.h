// SPDX-License-Identifier: Apache-2.0
// The kernel in front of scattered terms (scatter_nests.h), which writes what each element is
// without terms. Test: test/schedule/scatter.sched
#pragma once

#include "lower/points/points_alternatives.h"

namespace nautilus::lower {

// Takes the line `first` out of `alternative`, the lines of the terms' kernel. `points`: of the
// elements; its rules answer where there is no line. What was done is added to `members`, which are
// noted with the terms. Nothing if the line is missing or refused.
std::optional<LoweredKernel> first_kernel(const PointsContext& points, ir::Block& alternative,
                                          ir::Block& members, ir::PassContext& context);

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// The copy of a result that each CTA of a kernel has in shared memory (`private on`): what it
// begins with, how points combine with it, and how it is combined with the result in memory.
#pragma once

#include <optional>

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// How the points of the kernel combine with the copy; nothing if it has none.
std::optional<expr::Reducer> reducer_of_own(const PointsScope& scope);
// In front of the points; what stands there comes after kernels in front, if the kernel is early.
void begin_own(PointsScope& scope, expr::Reducer reducer, bool is_early);
void scatter_to_own(PointsScope& scope, const matile::Scatter& s);
// Behind the points; the loop over them closes first.
void end_own(PointsScope& scope, expr::Reducer reducer);

}  // namespace nautilus::emit

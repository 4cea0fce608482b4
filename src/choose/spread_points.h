// SPDX-License-Identifier: Apache-2.0
// Whether threads of a kernel of points have several points of a tile each.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "decision/decisions.h"
#include "lower/points/points_kernel.h"
#include "target/target.h"

namespace nautilus::choose {

// Windows: reductions over few elements, all of whose loops have known turns, of tensors whose
// elements neighbours along the last axis read near each other. What takes the time there is to
// find out where a point is and to ask where its window ends, so a thread has several points, and
// those above each other share what they load. Nothing if the kernel is none of these, or has few
// points. `usual`: about how long an axis is.
//
// Element-wise work that reads at quotients of its last axis likewise: points below each other
// share those of the column, points beside each other those of the row (classes of a transposed
// convolution put together: the whole of such a program 3.39 to 1.44 ms).
std::optional<decision::Spread> spread_points(std::span<const lower::MapNest> nests,
                                              const target::Target& target,
                                              const std::function<double(expr::Expr)>& usual,
                                              expr::ExprPool& pool);

// Lines of element-wise work: a thread has lines below each other where there are points enough, so
// that its loads are under way together, and what rows share is loaded once. `each`: points of a
// line.
std::optional<decision::Spread> spread_lines(std::span<const lower::MapNest> nests, int64_t each,
                                             const target::Target& target,
                                             const std::function<double(expr::Expr)>& usual);

}  // namespace nautilus::choose

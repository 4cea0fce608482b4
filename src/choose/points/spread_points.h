// SPDX-License-Identifier: Apache-2.0
// Whether threads of a point kernel have several points of a tile each.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "decision/decisions.h"
#include "lower/points/points_kernel.h"
#include "target/target.h"

namespace nautilus::choose {

// Windows are reductions over few elements with a known number of turns in all loops; neighbouring
// points along the last axis read elements that are close in memory. Most of the time there goes
// into computing the place of a point and testing where its window ends. So a thread has several
// points, and points in the same column share their loads. Nothing for other kernels, and for few
// points. `usual`: about how long an axis is.
//
// The same holds for element-wise work that reads at quotients of its last axis: points in the same
// column share the column's quotients, points in the same row those of the row (combining the
// classes of a transposed convolution: the whole program 3.39 to 1.44 ms).
std::optional<decision::Spread> spread_points(std::span<const lower::MapNest> nests,
                                              const target::Target& target,
                                              const std::function<double(expr::Expr)>& usual,
                                              expr::ExprPool& pool);

// For element-wise work: a thread has pieces of consecutive rows where there are enough points, so
// that its loads are in flight together, and elements that rows share are loaded once. `each`:
// points of a piece.
std::optional<decision::Spread> spread_lines(std::span<const lower::MapNest> nests, int64_t each,
                                             const target::Target& target,
                                             const std::function<double(expr::Expr)>& usual);

}  // namespace nautilus::choose

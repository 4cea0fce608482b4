// SPDX-License-Identifier: Apache-2.0
// Elements of the points of one thread that are neighbours in memory: loaded and stored together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// Whether the elements of the points of a thread are neighbours.
bool has_line(const PointsScope& scope, ir::Name tensor, std::span<const expr::Expr> indices);
// Numbers, sizes among them, of which the place of a line's first point in the last dimension is a
// sum of multiples; whole vectors begin there if one does at each of them. Nothing if none does
// whatever the sizes are, as at `5*t + r`.
std::optional<std::vector<expr::Expr>> line_steps(const PointsScope& scope, expr::Expr axis,
                                                  ir::Name tensor,
                                                  std::span<const expr::Expr> indices);
// Whether the line along the axis is whole vectors where the kernel has asked for that.
bool is_whole_line(const PointsScope& scope, expr::Expr axis, ir::Name tensor,
                   std::span<const expr::Expr> indices);
// Loads what every point of the thread reads. What a point reads under a condition stays where it
// is: it may be outside its tensor.
void load_lines(PointsScope& scope, expr::Expr value);
void store_line(PointsScope& scope, const matile::Write& w);
// How far elements of neighbouring points lie from each other.
std::string apart(const PointsScope& scope, ir::Name tensor);

}  // namespace nautilus::emit

// SPDX-License-Identifier: Apache-2.0
#include "lower/points/patch_points.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/walk.h"
#include "lower/points/point_counts.h"
#include "lower/points/points_loops.h"
#include "matile/point_layout.h"
#include "matile/read_values.h"

namespace nautilus::lower {

bool patch(LoweredKernel& parts, const decision::Patch& line, int64_t threads,
           expr::ExprPool& pool) {
  auto kernel = parts.kernel.as<matile::Kernel>();
  const matile::Points& points = matile::points_of(kernel);
  matile::PointLayout layout = matile::point_layout(kernel);
  if (layout.lanes || layout.across || layout.each || layout.spread || line.rows == line.columns ||
      matile::reads_by_values(points))
    return false;
  ir::Axes of_rows;
  ir::Axes others;
  bool has_columns = false;
  for (const ir::Axis& a : points.axes) {
    if (a.name == line.rows) {
      of_rows.push_back({a.name, quotient_up(a.extent, line.high.value_or(1), pool)});
      continue;
    }
    others.push_back(a);
    if (a.name != line.columns) continue;
    others.back().extent = quotient_up(a.extent, line.wide.value_or(1), pool);
    has_columns = true;
  }
  if (of_rows.empty() || !has_columns) return false;
  // Points of a thread walk the same loops.
  ir::Exprs own = {pool.index(line.rows), pool.index(line.columns)};
  const auto is_same = [&](expr::Expr bound) {
    return expr::tensors_read(bound).empty() &&
           std::none_of(own.begin(), own.end(),
                        [&](expr::Expr v) { return expr::depends_on(bound, v); });
  };
  bool is_plain = true;
  ir::for_each_op(points.body, [&](const ir::Op& op) {
    is_plain &= !op.is<matile::If>() && !is_writing_loop(op);
    if (const auto* v = op.get<matile::Value>()) own.push_back(pool.var(v->name, v->dtype));
    if (const auto* l = op.get<matile::Let>()) own.push_back(pool.var(l->name, l->value.dtype()));
    if (const auto* l = op.get<matile::Loop>()) is_plain &= is_same(l->from) && is_same(l->to);
  });
  if (!is_plain) return false;
  layout.patch = line;
  auto launch = parts.launch.as<matile::Launch>();
  launch.grid = pool.binary(expr::Op::Mul, count_of(of_rows, pool),
                            quotient_up(count_of(others, pool), threads, pool));
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
  parts.launch = ir::make(std::move(launch));
  return true;
}

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_grid.h"

#include <fmt/format.h>

#include "ir/target_of.h"

namespace nautilus::emit {

PointsGrid::PointsGrid(const ir::Program& program, const matile::Points& points,
                       expr::ExprPool& pool)
    : warp(ir::target_of(program).limits.warp_threads),
      threads(points.threads.value_or(ir::target_of(program).points.threads)),
      lanes(points.lanes_per_point.value_or(1)),
      points_per_thread(points.points_of_line.value_or(points.points_per_thread.value_or(1))),
      is_line(points.points_of_line.has_value()),
      last(pool.index(points.axes.back().name)),
      held(points.held.value_or(0)),
      unroll(points.unroll.value_or(1)),
      windows(points.windows.value_or(0)) {
  if (points.across) {
    across = pool.index(points.across);
    points_across = *points.points_across;
    lines_across = points.lines_across.value_or(1);
  }
  if (points.spread) {
    spread = *points.spread;
    if (!is_line) points_per_thread = points.points_apart.value_or(1);
    points_across = points.points_down.value_or(1);
    if (points.axes.size() > 1) across = pool.index(points.axes[points.axes.size() - 2].name);
  }
  if (points.patch) {
    is_patch = true;
    across = pool.index(points.patch);
    points_across = points.patch_high.value_or(1);
    last = pool.index(points.patch_over);
    points_per_thread = points.patch_wide.value_or(1);
    spread = 1;
  }
}

std::string PointsGrid::described() const {
  if (across) return fmt::format("one for {} by {} points", points_across, points_per_thread);
  if (points_per_thread > 1) return fmt::format("one for {} points", points_per_thread);
  if (lanes == 1) return "one for each point";
  if (lanes == warp) return "a warp for each point";
  return lanes > warp ? "all for one point" : fmt::format("{} of a warp for each point", lanes);
}

}  // namespace nautilus::emit

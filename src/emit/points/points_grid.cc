// SPDX-License-Identifier: Apache-2.0
#include "emit/points/points_grid.h"

#include <fmt/format.h>

#include "ir/target_of.h"

namespace nautilus::emit {

PointsGrid::PointsGrid(const ir::Program& program, const matile::Kernel& kernel,
                       expr::ExprPool& pool)
    : warp(ir::target_of(program).limits.warp_threads) {
  const ir::Axes& axes = matile::points_of(kernel).axes;
  const matile::PointLayout layout = matile::point_layout(kernel);
  threads = layout.threads.value_or(ir::target_of(program).points.threads);
  lanes = layout.lanes.value_or(1);
  points_per_thread = layout.neighbours();
  is_line = layout.is_ragged();
  last = pool.index(axes.back().name);
  held = layout.held.value_or(0);
  unroll = layout.unroll.value_or(1);
  windows = layout.windows.value_or(0);
  is_private = layout.is_private;
  if (layout.across) {
    across = pool.index(layout.across->axis);
    points_across = *layout.across->points;
    lines_across = layout.across->lines.value_or(1);
  }
  if (layout.spread) {
    spread = *layout.spread->threads;
    if (!is_line) points_per_thread = layout.spread->apart.value_or(1);
    points_across = layout.spread->down.value_or(1);
    if (axes.size() > 1) across = pool.index(axes[axes.size() - 2].name);
  }
  if (layout.patch) {
    is_patch = true;
    across = pool.index(layout.patch->rows);
    points_across = layout.patch->high.value_or(1);
    last = pool.index(layout.patch->columns);
    points_per_thread = layout.patch->wide.value_or(1);
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

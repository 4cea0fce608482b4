// SPDX-License-Identifier: Apache-2.0
// The kernels of nests with a thread for each point (points_kernel.h), each with lines of its own:
// how many lanes share a point, and how many points a thread has.
#pragma once

#include <span>

#include "decision/decisions.h"
#include "lower/kernel/point_answers.h"
#include "lower/points/points_kernel.h"

namespace nautilus::lower {

// What kernels of points are made from.
struct PointsContext {
  const std::vector<MapNest>& nests;
  const std::set<std::string>& kept;  // buffers that somebody reads after the kernel
  const std::map<std::string, ir::TensorType>& buffers;
  const target::Target& target;
  FreshNames& names;
  PointAnswers* rules;  // for what no line says; null: the lines are complete
  decision::Form form = decision::Form::Points;  // what the schedule calls them
  ir::Name machine = {};  // the size that is the number of multiprocessors; of scattered terms
};

// One kernel. `alternative`: its lines; `members`: what is noted besides. Nothing if something was
// reported.
std::optional<LoweredKernel> points_alternative(const PointsContext& points,
                                                const ir::Block& alternative,
                                                const ir::Block& members, ir::PassContext& context);

// The kernels that put parts together, of which the plan launches one by its sizes: the first, or
// one whose lanes share a point, or one with several points in a thread. `are_optional`: those that
// cannot be made, but for the first, are left out.
std::optional<std::vector<LoweredKernel>> parts_alternatives(
    const PointsContext& points, std::span<const ir::Block> alternatives, bool are_optional,
    const ir::Block& members, ir::PassContext& context);

}  // namespace nautilus::lower

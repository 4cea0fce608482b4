// SPDX-License-Identifier: Apache-2.0
#include "lower/points/unroll_loops.h"

#include <algorithm>

#include "ir/walk.h"
#include "matile/loop_loads.h"
#include "matile/point_layout.h"

namespace nautilus::lower {
namespace {

using matile::Kernel;
using EK = expr::Op;

// Points whose loops are walked by one thread, each loop for one point.
bool has_own_loops(const matile::PointLayout& layout) {
  return layout.lanes.value_or(1) == 1 && layout.neighbours() == 1 && !layout.spread &&
         !layout.patch && !layout.across && !layout.held;
}

// Loads of the loops whose turns can be taken together: the most of one turn, 0 if there is none.
int64_t most_loads(const Kernel& kernel, expr::ExprPool& pool) {
  int64_t most = 0;
  if (!has_own_loops(matile::point_layout(kernel))) return 0;
  ir::for_each_op(matile::points_of(kernel).body, [&](const ir::Op& op) {
    const auto* l = op.get<matile::Loop>();
    if (!l) return;
    const auto ahead = static_cast<int64_t>(matile::loads_ahead(*l, pool).size());
    most = std::max({most, loads_of_turn(*l, pool), ahead});
  });
  return most;
}

// Whether it has a loop over parts, whose number is one of the plan.
bool walks_parts(const matile::Points& points) {
  bool has_one = false;
  ir::for_each_op(points.body, [&](const ir::Op& op) {
    if (const auto* l = op.get<matile::Loop>()) has_one |= l->to.op() == EK::Var;
    if (const auto* s = op.get<matile::SharedLoop>()) has_one |= s->to.op() == EK::Var;
  });
  return has_one;
}

}  // namespace

std::optional<TurnFacts> turn_facts(const LoweredKernel& parts, bool over_parts,
                                    expr::ExprPool& pool) {
  const auto& kernel = parts.kernel.as<Kernel>();
  const TurnFacts out{over_parts && walks_parts(matile::points_of(kernel)),
                      most_loads(kernel, pool)};
  return out.is_over_parts || out.loads > 0 ? std::optional(out) : std::nullopt;
}

void set_unroll(LoweredKernel& parts, int64_t turns) {
  auto kernel = parts.kernel.as<Kernel>();
  matile::PointLayout layout = matile::point_layout(kernel);
  layout.unroll.reset();
  if (turns > 1) layout.unroll = turns;
  matile::set_point_layout(kernel, layout);
  parts.kernel = ir::make(std::move(kernel));
}

}  // namespace nautilus::lower

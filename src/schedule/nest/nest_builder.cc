// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/nest/nest_outline.h"

namespace nautilus::schedule {

using expr::Op;
using scalar::For;
using scalar::LoopKind;

BuiltKernel NestBuilder::run(const ir::Axes& once) {
  find_needed(f_);
  guard_empty_axes();
  place_members(f_);
  choose_steps();
  For nest = grid(once, body());
  BuiltKernel out{{},
                  std::move(f_.tiles.buffers()),
                  std::move(f_.range.live.buffers),
                  std::move(f_.range.live.statements),
                  {ir::make(std::move(nest))},
                  {},
                  {std::move(decided_)},
                  std::move(refused_),
                  std::move(f_.notes)};
  if (f_.split) {
    for (ir::Op& op : results_.combined(out.locals)) out.nests.push_back(std::move(op));
  } else {
    out.wholes.push_back({0, f_.sizes, f_.tiling.at(f_.fusion.row).tile, !once.empty()});
  }
  return out;
}

void NestBuilder::guard_empty_axes() {
  for (Expr a : f_.tiling.order()) {
    if (f_.tiling.at(a).kind == AxisKind::Batch && runs_when_empty(a)) f_.tiling.guard(a, f_.pool);
  }
}

void NestBuilder::choose_steps() {
  FoundSteps found = find_steps(f_);
  f_.range = std::move(found.range);
  decided_ = std::move(found.decided);
  refused_ = std::move(found.refused);
  if (f_.range.live.listed)
    f_.tiling.take_steps_from(f_.fusion.stream, f_.range.live.listed, f_.pool);
  guards_.choose();
  if (f_.split && f_.tiling.has_loop()) f_.range = part_of(f_.range, f_);
}

ir::Block NestBuilder::body() {
  ir::Block out;
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (f_.placed[k].place == MemberPlace::Before) terms_.tile(k, out, NestPhase::Before);
    if (f_.placed[k].place == MemberPlace::Rolled) loop_.start(k, out);
  }
  loop_.emit(out);
  for (size_t k : f_.rolled) {
    if (f_.placed[k].recurrence.shift) moving_.settle(k, out);
  }
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (f_.placed[k].place != MemberPlace::Behind) continue;
    terms_.tile(k, out, NestPhase::After);
    f_.notes.push_back(fmt::format("close {}: along {}, behind the loop", f_.member(k).target.str(),
                                   f_.member(k).inner[0].name().str()));
  }
  results_.store(out);
  return out;
}

For NestBuilder::grid(const ir::Axes& once, ir::Block body) {
  if (f_.tiling.group_var()) {
    For groups{{{f_.tiling.group_var().name(), f_.pool.integer(f_.sizes.warp_groups)}},
               LoopKind::Group,
               std::move(body)};
    body.clear();
    body.push_back(ir::make(std::move(groups)));
  }
  For out{once, LoopKind::Grid, std::move(body)};
  for (Expr a : f_.tiling.order()) {
    const TileAxis& t = f_.tiling.at(a);
    if (t.kind == AxisKind::Batch) out.axes.push_back({a.name(), at_least_one(a, t.extent)});
  }
  for (const AxisKind kind : {AxisKind::Row, AxisKind::Cut}) {
    for (Expr a : f_.tiling.order()) {
      const TileAxis& t = f_.tiling.at(a);
      if (t.kind != kind) continue;
      const Expr count = tile_count(f_.fusion, t, f_.pool);
      out.axes.push_back({t.tile.name(), kind == AxisKind::Cut ? at_least_one(a, count) : count});
    }
  }
  if (f_.split) out.axes.push_back({f_.split->part.name(), f_.split->split});
  if (f_.split && f_.split->combines_last) out.combine = scalar::Combine::Last;
  return out;
}

bool NestBuilder::runs_when_empty(Expr axis) const {
  if (f_.tiling.at(axis).extent.op() == Op::IntConst) return false;
  return std::any_of(f_.members().begin(), f_.members().end(), [&](const Member& m) {
    return f_.stored.contains(m.statement) && !m.has(axis);
  });
}

Expr NestBuilder::at_least_one(Expr axis, Expr count) {
  return runs_when_empty(axis) ? f_.pool.binary(Op::Max, count, f_.pool.integer(1)) : count;
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_outline.h"

#include <fmt/format.h>

#include "base/check.h"
#include "decision/lines.h"
#include "expr/walk.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

bool is_same_reduction(const Member& a, const Member& b, NestFrame& frame) {
  return a.is_rolled == b.is_rolled && a.axes == b.axes && a.inner == b.inner &&
         a.dtype == b.dtype && (!b.is_reduction() || a.reducer == b.reducer) && a.init == b.init &&
         b.is_reduction() &&
         frame.fusion.inlined(frame.pool, a.value) == frame.fusion.inlined(frame.pool, b.value);
}

void need(size_t k, NestFrame& frame) {
  if (frame.placed[k].is_needed) return;
  frame.placed[k].is_needed = true;
  auto visit = [&](Expr e) {
    if (const auto p = frame.index_of(e)) need(*p, frame);
  };
  expr::for_each(frame.member(k).value, visit);
  if (frame.member(k).init) expr::for_each(frame.member(k).init, visit);
}

void place(size_t k, NestFrame& frame) {
  const Member& m = frame.member(k);
  PlacedMember& placed = frame.placed[k];
  if (!placed.is_needed) return;
  const Fusion& fusion = frame.fusion;
  const bool is_late = !m.is_reduction() && !m.has(fusion.stream) && fusion.depends_on_rolled(m);
  if (is_late || fusion.tile_axes(m).empty()) return;
  if (m.is_rolled) {
    placed.place = MemberPlace::Rolled;
    frame.rolled.push_back(k);
    const auto r = recurrence_of(fusion, m, frame.signs, frame.pool);
    NAUT_CHECK(r, "`{}` was accepted and cannot be rolled: {}", m.target.str(),
               r.rejection().message);
    placed.recurrence = *r;
  } else {
    placed.place = m.is_closing           ? MemberPlace::Behind
                   : m.has(fusion.stream) ? MemberPlace::Loop
                                          : MemberPlace::Before;
  }
  placed.tile = frame.tiles.make(m.target.str(), m.dtype, frame.tile_axes(m));
}

}  // namespace

void find_needed(NestFrame& frame) {
  expr::Substitution same;
  for (size_t k = 0; k < frame.members().size(); ++k) {
    Member& m = frame.fusion.members[k];
    m.value = expr::substitute(frame.pool, m.value, same);
    if (m.init) m.init = expr::substitute(frame.pool, m.init, same);
    frame.placed.emplace_back().same_as = k;
    for (size_t p = 0; p < k; ++p) {
      if (!is_same_reduction(frame.member(p), m, frame)) continue;
      const size_t first = frame.placed[p].same_as;
      frame.placed[k].same_as = first;
      same.emplace(m.read, frame.member(first).read);
      break;
    }
  }
  for (size_t k = 0; k < frame.members().size(); ++k) {
    if (frame.is_stored(k)) need(frame.placed[k].same_as, frame);
  }
}

void place_members(NestFrame& frame) {
  for (size_t k = 0; k < frame.members().size(); ++k) place(k, frame);
}

FoundSteps find_steps(NestFrame& frame) {
  FoundSteps found;
  const ir::Op* line = nullptr;
  const auto refuse = [&](const ir::Op& op, std::string_view why) {
    if (!found.refused) found.refused = Rejection{"decision", decision::refusal(op, why)};
  };
  for (const ir::Op& op : frame.sizes.lines) {
    if (!op.is<decision::Live>()) continue;
    if (line) refuse(op, "the kernel has another line of this kind");
    line = &op;
  }
  const decision::Live* asked = line ? &line->as<decision::Live>() : nullptr;
  if (asked && asked->axis != frame.fusion.stream.name())
    refuse(*line, fmt::format("the loop of this kernel steps along `{}`",
                              frame.fusion.stream.name().str()));
  if (!frame.tiling.has_loop()) {
    if (line) refuse(*line, "one step has the whole axis");
    return found;
  }
  found.range = step_range(frame.scope(), frame.rolled, frame.tiling,
                           asked ? std::optional(asked->kind) : std::nullopt, frame.names);
  if (line && !found.range.refused.empty()) refuse(*line, found.range.refused);
  if (!found.range.kind) return found;
  const decision::By by = asked ? asked->by : decision::By::Auto;
  found.decided.push_back(
      ir::make(decision::Live{frame.fusion.stream.name(), *found.range.kind, by}));
  return found;
}

StepRange part_of(StepRange range, NestFrame& frame) {
  expr::ExprPool& pool = frame.pool;
  const SplitSizes& split = *frame.split;
  const Expr one = pool.integer(1);
  if (range.live.listed) {
    // A part may begin after the end of a list.
    const Expr is_listed =
        pool.binary(Op::Lt, frame.tiling.at(frame.fusion.stream).tile, range.live.end);
    const Expr full = pool.binary(Op::And, range.live.full, is_listed);
    for (auto& [part, written] : range.instead)
      written = expr::substitute(pool, written, {{range.live.full, full}});
    range.live.full = full;
  }
  const Expr begin = pool.binary(Op::Mul, split.part, split.steps_per_part);
  const Expr end =
      pool.binary(Op::Min, split.steps, pool.binary(Op::Add, begin, split.steps_per_part));
  Expr first = begin;
  if (!range.first.is_int(0)) {
    first = pool.binary(Op::Min, pool.binary(Op::Max, range.first, begin),
                        pool.binary(Op::Max, begin, pool.binary(Op::Sub, end, one)));
  }
  const bool is_open = range.masks.empty() && range.live.conditions.empty();
  const Expr last = is_open ? end : pool.binary(Op::Min, range.count, end);
  range.first = first;
  range.count = pool.binary(Op::Max, pool.binary(Op::Add, first, one), last);
  return range;
}

}  // namespace nautilus::schedule

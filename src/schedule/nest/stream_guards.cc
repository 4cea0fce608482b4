// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/stream_guards.h"

#include <algorithm>

#include "expr/walk.h"

namespace nautilus::schedule {

using expr::Op;

namespace {
const std::vector<RangeGuard> kNoGuards;
}

StreamGuards::StreamGuards(NestFrame& frame)
    : f_(frame),
      facts_(ir::facts_of(frame.program, frame.pool)),
      inputs_(scalar::buffers(frame.program, scalar::Role::Input)) {}

void StreamGuards::choose() {
  if (!f_.tiling.at(f_.fusion.stream).in_range) return;
  std::vector<size_t> candidates;
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (f_.placed[k].place == MemberPlace::Loop) candidates.push_back(k);
  }
  for (size_t k : f_.rolled) {
    if (is_identity_past_end(k)) continue;
    const auto g = range_guard(f_.scope(), f_.member(k), guards_, candidates);
    if (g) guards_.push_back(*g);
  }
  // A guarded tile serves all its readers; the remaining reductions guard their own terms.
  for (size_t k : f_.rolled) {
    if (!is_identity_past_end(k)) own_guard_.insert(k);
  }
}

const RangeGuard* StreamGuards::find(size_t k) const {
  const auto guard = std::find_if(guards_.begin(), guards_.end(),
                                  [&](const RangeGuard& g) { return g.member == k; });
  return guard == guards_.end() ? nullptr : &*guard;
}

bool StreamGuards::is_own(size_t k, Expr axis) {
  return axis == f_.fusion.stream ? own_guard_.contains(k) : !is_zero_filled(k, axis);
}

Expr StreamGuards::in_stream() {
  Expr in_range = f_.tiling.at(f_.fusion.stream).in_range;
  // The loop has a first step where an outer axis is empty, too.
  for (Expr a : f_.fusion.outer) {
    const Expr extent = f_.fusion.extents.at(a);
    if (!in_range || extent.op() == Op::IntConst) continue;
    in_range =
        f_.pool.binary(Op::And, in_range, f_.pool.binary(Op::Gt, extent, f_.pool.integer(0)));
  }
  return in_range && f_.range.live.listed ? f_.pool.binary(Op::Or, f_.range.live.full, in_range)
                                          : in_range;
}

bool StreamGuards::is_identity_past_end(size_t k) {
  if (is_zero_filled(k, f_.fusion.stream)) return true;
  // A value that another kernel reduced over an empty axis may be infinite.
  if (may_be_empty(f_.fusion.stream) && reads_results(f_.member(k).value, f_.fusion.stream))
    return false;
  return is_identity_beyond(f_.scope(), f_.member(k), guards_);
}

bool StreamGuards::is_zero_filled(size_t k, Expr axis) {
  const Dot* d = f_.fusion.dot_of(k);
  if (!d || d->depth != axis) return false;
  const bool is_open = may_be_empty(axis);
  const auto is_finite = [&](Expr f) {
    if (is_open && reads_results(f)) return false;
    const Limit x = limit_beyond(f_.scope(), f, axis == f_.fusion.stream ? guards_ : kNoGuards);
    return x == Limit::Finite || x == Limit::Zero;
  };
  const auto dots = f_.fusion.dots_of(k);
  return std::all_of(dots.begin(), dots.end(), [&](const Dot& term) {
    return std::all_of(term.a.begin(), term.a.end(), is_finite);
  });
}

bool StreamGuards::may_be_empty(Expr axis) {
  const Expr any = f_.pool.binary(Op::Ge, f_.fusion.extents.at(axis), f_.pool.integer(1));
  return facts_.prove(any) != expr::Truth::True;
}

bool StreamGuards::reads_results(Expr e, Expr but_along) const {
  std::vector<Expr> todo = {e};
  std::set<const Member*> seen;
  while (!todo.empty()) {
    const Expr next = todo.back();
    todo.pop_back();
    bool found = false;
    expr::for_each(next, [&](Expr x) {
      if (x.op() != Op::Read) return;
      const Member* m = f_.fusion.find(x);
      const bool is_left_out = but_along && expr::depends_on(x, but_along);
      if (!m) found |= !is_left_out && !inputs_.contains(std::string(x.name().str()));
      if (m && seen.insert(m).second) todo.push_back(m->value);
    });
    if (found) return true;
  }
  return false;
}

}  // namespace nautilus::schedule

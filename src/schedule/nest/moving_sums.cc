// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/moving_sums.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;

void MovingSums::start(size_t k, ir::Block& out) {
  const Member& m = f_.member(k);
  const Shift& shift = *f_.placed[k].recurrence.shift;
  const auto zeros = [&](const std::string& name) {
    const LocalTile local = f_.tiles.make(name, m.dtype, f_.placed[k].tile->axes);
    f_.tiles.emit_reduction(out, local, f_.number(0, m.dtype), {}, expr::Reducer::Sum, {});
    return local;
  };
  moving_[k].sums.push_back(*f_.placed[k].tile);
  for (size_t n = 1; n < shift.moments.size(); ++n)
    moving_[k].sums.push_back(zeros(fmt::format("{}.d{}", m.target.str(), n)));
  for (Expr s : shift.symbols) moving_[k].references.push_back(zeros(std::string(s.name().str())));
  if (!shift.plain_sums.empty() && !seen_) seen_ = zeros("seen");
}

Expr MovingSums::move(size_t k, ir::Block& out, ir::Block& commits) {
  const Shift& shift = *f_.placed[k].recurrence.shift;
  Moving& moving = moving_[k];
  const DType dtype = f_.member(k).dtype;
  const auto next_of = [&](const LocalTile& local, Expr value) {
    const LocalTile next =
        f_.tiles.make(fmt::format("{}.new", local.name.str()), dtype, local.axes);
    f_.tiles.emit_store(out, next, value);
    f_.tiles.emit_store(commits, local, f_.tiles.read(next, dtype));
    return next;
  };
  if (!shift.plain_sums.empty() && !new_seen_)
    new_seen_ = next_of(
        *seen_, f_.pool.binary(Op::Add, f_.tiles.read(*seen_, dtype), places_in_step(dtype)));
  for (size_t n = 0; n < shift.references.size(); ++n) {
    const Expr symbol = f_.pool.var(f_.pool.name("seen"), dtype);
    Expr value = extrapolated(shift, shift.references[n], symbol, all_places(dtype), f_.pool);
    value = translation_.translated(value, NestPhase::Loop);
    if (new_seen_)
      value = expr::substitute(f_.pool, value, {{symbol, f_.tiles.read(*new_seen_, dtype)}});
    const Expr before = f_.tiles.read(moving.references[n], dtype);
    // Before the first element that counts it may be -inf or 0 / 0: then the last one stays.
    value = f_.pool.select(is_finite(value, f_.pool), value, before);
    moving.next.push_back(next_of(moving.references[n], value));
    const LocalTile step = f_.tiles.make(fmt::format("{}.step", moving.references[n].name.str()),
                                         dtype, f_.placed[k].tile->axes);
    f_.tiles.emit_store(out, step, step_of(before, f_.tiles.read(moving.next[n], dtype), f_.pool));
    moving.steps.push_back(f_.tiles.read(step, dtype));
  }
  return algebra::moved_sum(f_.pool, shift.moments, 0, sums_of(k), moving.steps);
}

void MovingSums::roll_moments(size_t k, const std::function<Expr(Expr)>& repaired, ir::Block& out) {
  const Shift& shift = *f_.placed[k].recurrence.shift;
  const Moving& moving = moving_[k];
  for (size_t n = 1; n < shift.moments.size(); ++n) {
    const Expr value = algebra::moved_sum(f_.pool, shift.moments, n, sums_of(k), moving.steps);
    const Expr old = f_.tiles.read(moving.sums[n], f_.member(k).dtype);
    const Expr each_term = shift.moments[n].term;
    const bool is_streamed = expr::depends_on(each_term, f_.fusion.stream) ||
                             std::any_of(f_.fusion.outer.begin(), f_.fusion.outer.end(),
                                         [&](Expr a) { return expr::depends_on(each_term, a); });
    if (!is_streamed) {
      // The same at every place.
      const Expr each = value_of(k, n);
      const Expr all = f_.pool.binary(Op::Mul, each, places_in_step(f_.member(k).dtype));
      f_.tiles.emit_store(out, moving.sums[n], f_.pool.binary(Op::Add, repaired(value), all));
      continue;
    }
    if (repaired(value) != old) f_.tiles.emit_store(out, moving.sums[n], repaired(value));
    f_.tiles.emit_reduction(out, moving.sums[n], {}, f_.fusion.stream, expr::Reducer::Sum,
                            term(k, n));
  }
}

Expr MovingSums::term(size_t k, size_t moment) {
  const Expr value = value_of(k, moment);
  const Expr in_range = guards_.in_stream();
  return in_range ? f_.pool.select(in_range, value, f_.number(0, value.dtype())) : value;
}

void MovingSums::settle(size_t k, ir::Block& out) {
  const Shift& shift = *f_.placed[k].recurrence.shift;
  const DType dtype = f_.member(k).dtype;
  const std::vector<Expr> sums = sums_of(k);
  std::vector<Expr> steps;
  Expr is_known;
  Expr lost;  // 0, or NaN where a reference is not finite to the end
  for (size_t n = 0; n < shift.references.size(); ++n) {
    const LocalTile last =
        f_.tiles.make(fmt::format("{}.last", moving_[k].references[n].name.str()), dtype,
                      f_.placed[k].tile->axes);
    f_.tiles.emit_store(out, last, translation_.translated(shift.references[n], NestPhase::After));
    const Expr value = f_.tiles.read(last, dtype);
    steps.push_back(step_of(f_.tiles.read(moving_[k].references[n], dtype), value, f_.pool));
    is_known = f_.both(is_known, is_finite(value, f_.pool));
    const Expr nothing = f_.pool.binary(Op::Mul, value, f_.number(0, dtype));
    lost = lost ? f_.pool.binary(Op::Add, lost, nothing) : nothing;
  }
  // Nothing was counted: the sum is what it is, whatever the reference.
  Expr is_empty;
  for (size_t n = 1; n < sums.size(); ++n)
    is_empty = f_.both(is_empty, f_.pool.binary(Op::Eq, sums[n], f_.number(0, dtype)));
  Expr unknown = f_.pool.binary(Op::Add, sums[0], lost);
  if (is_empty) unknown = f_.pool.select(is_empty, sums[0], unknown);
  const Expr moved = algebra::moved_sum(f_.pool, shift.moments, 0, sums, steps);
  f_.tiles.emit_store(out, *f_.placed[k].tile, f_.pool.select(is_known, moved, unknown));
}

std::vector<Expr> MovingSums::sums_of(size_t k) {
  std::vector<Expr> sums;
  for (const LocalTile& l : moving_[k].sums) sums.push_back(f_.tiles.read(l, f_.member(k).dtype));
  return sums;
}

Expr MovingSums::value_of(size_t k, size_t moment) {
  const Shift& shift = *f_.placed[k].recurrence.shift;
  // Tiles that exist here are read: those of members in front.
  expr::Substitution tiles;
  for (size_t p = 0; p < k; ++p) {
    if (f_.placed[p].place == MemberPlace::Loop && !f_.member(p).is_reduction())
      tiles.emplace(f_.fusion.inlined(f_.pool, f_.member(p).value), f_.member(p).read);
  }
  const Expr value = translation_.translated(
      expr::substitute(f_.pool, shift.moments[moment].term, tiles), NestPhase::Loop);
  expr::Substitution references;
  for (size_t n = 0; n < shift.symbols.size(); ++n)
    references.emplace(shift.symbols[n], f_.tiles.read(moving_[k].next[n], f_.member(k).dtype));
  return expr::substitute(f_.pool, value, references);
}

Expr MovingSums::places_in_step(DType dtype) {
  const TileAxis& t = f_.tiling.at(f_.fusion.stream);
  if (!t.in_range) return f_.number(static_cast<double>(t.size), dtype);
  const Expr first = expr::substitute(f_.pool, t.position, {{t.var, f_.pool.integer(0)}});
  const Expr rest = f_.pool.binary(Op::Sub, t.extent, first);
  return f_.pool.cast(dtype,
                      f_.pool.binary(Op::Max, f_.pool.integer(0),
                                     f_.pool.binary(Op::Min, f_.pool.integer(t.size), rest)));
}

Expr MovingSums::all_places(DType dtype) {
  Expr all = f_.fusion.extents.at(f_.fusion.stream);
  for (Expr a : f_.fusion.outer) all = f_.pool.binary(Op::Mul, all, f_.fusion.extents.at(a));
  return f_.pool.cast(dtype, all);
}

}  // namespace nautilus::schedule

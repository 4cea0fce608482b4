// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

void NestBuilder::start_references(size_t k, ir::Block& out) {
  const Member& m = member(k);
  const Shift& shift = *recurrences_[k].shift;
  const auto start = [&](const std::string& name) {
    const Local local = make_local(name, m.dtype, local_[k]->axes);
    emit_reduction(out, local, number(0, m.dtype), {}, expr::Reducer::Sum, {});
    return local;
  };
  moving_[k].sums.push_back(*local_[k]);
  for (size_t n = 1; n < shift.moments.size(); ++n)
    moving_[k].sums.push_back(start(fmt::format("{}.d{}", m.target.str(), n)));
  for (Expr s : shift.symbols) moving_[k].references.push_back(start(std::string(s.name().str())));
  if (!shift.plain_sums.empty() && !seen_) seen_ = start("seen");
}

Expr NestBuilder::move_references(size_t k, ir::Block& out, ir::Block& commits) {
  const Shift& shift = *recurrences_[k].shift;
  Moving& moving = moving_[k];
  const DType dtype = member(k).dtype;
  const auto next_of = [&](const Local& local, Expr value) {
    const Local next = make_local(fmt::format("{}.new", local.name.str()), dtype, local.axes);
    emit_store(out, next, value);
    emit_store(commits, local, local_read(next, dtype));
    return next;
  };
  if (!shift.plain_sums.empty() && !new_seen_)
    new_seen_ =
        next_of(*seen_, pool_.binary(Op::Add, local_read(*seen_, dtype), places_in_step(dtype)));
  for (size_t n = 0; n < shift.references.size(); ++n) {
    const Expr symbol = pool_.var(pool_.name("seen"), dtype);
    Expr value = extrapolated(shift, shift.references[n], symbol, all_places(dtype), pool_);
    value = translated(value, Phase::Loop);
    if (new_seen_)
      value = expr::substitute(pool_, value, {{symbol, local_read(*new_seen_, dtype)}});
    const Expr before = local_read(moving.references[n], dtype);
    // Before the first element that counts it may be -inf or 0 / 0: then the last one stays.
    value = pool_.select(is_finite(value, pool_), value, before);
    moving.next.push_back(next_of(moving.references[n], value));
    const Local step =
        make_local(fmt::format("{}.step", moving.references[n].name.str()), dtype, local_[k]->axes);
    emit_store(out, step, step_of(before, local_read(moving.next[n], dtype), pool_));
    moving.steps.push_back(local_read(step, dtype));
  }
  return algebra::moved_sum(pool_, shift.moments, 0, sums_of(k), moving.steps);
}

std::vector<Expr> NestBuilder::sums_of(size_t k) {
  std::vector<Expr> sums;
  for (const Local& l : moving_[k].sums) sums.push_back(local_read(l, member(k).dtype));
  return sums;
}

void NestBuilder::roll_moments(size_t k, const std::function<Expr(Expr)>& repaired,
                               ir::Block& out) {
  const Shift& shift = *recurrences_[k].shift;
  const Moving& moving = moving_[k];
  for (size_t n = 1; n < shift.moments.size(); ++n) {
    const Expr value = algebra::moved_sum(pool_, shift.moments, n, sums_of(k), moving.steps);
    const Expr old = local_read(moving.sums[n], member(k).dtype);
    const Expr term = shift.moments[n].term;
    const bool is_streamed = expr::depends_on(term, fusion_.stream) ||
                             std::any_of(fusion_.outer.begin(), fusion_.outer.end(),
                                         [&](Expr a) { return expr::depends_on(term, a); });
    if (!is_streamed) {
      // The same at every place.
      const Expr each = moving_value(k, n);
      const Expr all = pool_.binary(Op::Mul, each, places_in_step(member(k).dtype));
      emit_store(out, moving.sums[n], pool_.binary(Op::Add, repaired(value), all));
      continue;
    }
    if (repaired(value) != old) emit_store(out, moving.sums[n], repaired(value));
    emit_reduction(out, moving.sums[n], {}, fusion_.stream, expr::Reducer::Sum,
                   moving_term(k, n, out));
  }
}

Expr NestBuilder::moving_term(size_t k, size_t moment, ir::Block& out) {
  if (!recurrences_[k].shift) return term(k, fusion_.stream, out, Phase::Loop);
  const Expr value = moving_value(k, moment);
  const Expr in_range = in_stream();
  return in_range ? pool_.select(in_range, value, number(0, value.dtype())) : value;
}

Expr NestBuilder::moving_value(size_t k, size_t moment) {
  const Shift& shift = *recurrences_[k].shift;
  // Tiles that exist here are read: those of members in front.
  expr::Substitution tiles;
  for (size_t p = 0; p < k; ++p) {
    if (places_[p] == Place::Loop && !member(p).is_reduction())
      tiles.emplace(fusion_.inlined(pool_, member(p).value), member(p).read);
  }
  const Expr value =
      translated(expr::substitute(pool_, shift.moments[moment].term, tiles), Phase::Loop);
  expr::Substitution references;
  for (size_t n = 0; n < shift.symbols.size(); ++n)
    references.emplace(shift.symbols[n], local_read(moving_[k].next[n], member(k).dtype));
  return expr::substitute(pool_, value, references);
}

void NestBuilder::settle_references(size_t k, ir::Block& out) {
  const auto& shift = recurrences_[k].shift;
  if (!shift) return;
  const DType dtype = member(k).dtype;
  const std::vector<Expr> sums = sums_of(k);
  std::vector<Expr> steps;
  Expr is_known;
  Expr lost;  // 0, or NaN where a reference is not finite to the end
  for (size_t n = 0; n < shift->references.size(); ++n) {
    const Local last = make_local(fmt::format("{}.last", moving_[k].references[n].name.str()),
                                  dtype, local_[k]->axes);
    emit_store(out, last, translated(shift->references[n], Phase::After));
    const Expr value = local_read(last, dtype);
    steps.push_back(step_of(local_read(moving_[k].references[n], dtype), value, pool_));
    is_known = both(is_known, is_finite(value, pool_));
    const Expr nothing = pool_.binary(Op::Mul, value, number(0, dtype));
    lost = lost ? pool_.binary(Op::Add, lost, nothing) : nothing;
  }
  // Nothing was counted: the sum is what it is, whatever the reference.
  Expr is_empty;
  for (size_t n = 1; n < sums.size(); ++n)
    is_empty = both(is_empty, pool_.binary(Op::Eq, sums[n], number(0, dtype)));
  Expr unknown = pool_.binary(Op::Add, sums[0], lost);
  if (is_empty) unknown = pool_.select(is_empty, sums[0], unknown);
  const Expr moved = algebra::moved_sum(pool_, shift->moments, 0, sums, steps);
  emit_store(out, *local_[k], pool_.select(is_known, moved, unknown));
}

Expr NestBuilder::places_in_step(DType dtype) {
  const TileAxis& t = tiling_.at(fusion_.stream);
  if (!t.in_range) return number(static_cast<double>(t.size), dtype);
  const Expr first = expr::substitute(pool_, t.position, {{t.var, pool_.integer(0)}});
  const Expr rest = pool_.binary(Op::Sub, t.extent, first);
  return pool_.cast(dtype, pool_.binary(Op::Max, pool_.integer(0),
                                        pool_.binary(Op::Min, pool_.integer(t.size), rest)));
}

Expr NestBuilder::all_places(DType dtype) {
  Expr all = fusion_.extents.at(fusion_.stream);
  for (Expr a : fusion_.outer) all = pool_.binary(Op::Mul, all, fusion_.extents.at(a));
  return pool_.cast(dtype, all);
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/scalar_ops.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

namespace {
const std::vector<RangeGuard> kNoGuards;
}

void NestBuilder::choose_guards() {
  if (!tiling_.at(fusion_.stream).in_range) return;
  std::vector<size_t> candidates;
  for (size_t k = 0; k < members().size(); ++k) {
    if (places_[k] == Place::Loop) candidates.push_back(k);
  }
  for (size_t k : rolled_) {
    if (is_identity_past_end(k)) continue;
    const auto g = range_guard(fusion_, member(k), guards_, candidates, signs_, pool_);
    if (g) guards_.push_back(*g);
  }
  // Guards act on all that reads them; who is left guards its own terms.
  for (size_t k : rolled_) {
    if (!is_identity_past_end(k)) own_guard_.insert(k);
  }
}

bool NestBuilder::is_identity_past_end(size_t k) {
  if (is_zero_filled(k, fusion_.stream)) return true;
  // A value that another kernel reduced over an empty axis may be infinite.
  if (may_be_empty(fusion_.stream) && reads_results(member(k).value, fusion_.stream)) return false;
  return is_identity_beyond(fusion_, member(k), guards_, signs_, pool_);
}

bool NestBuilder::may_be_empty(Expr axis) {
  const Expr any = pool_.binary(Op::Ge, fusion_.extents.at(axis), pool_.integer(1));
  return facts_.prove(any) != expr::Truth::True;
}

bool NestBuilder::reads_results(Expr e, Expr but_along) const {
  std::vector<Expr> todo = {e};
  std::set<const Member*> seen;
  while (!todo.empty()) {
    const Expr next = todo.back();
    todo.pop_back();
    bool found = false;
    expr::for_each(next, [&](Expr x) {
      if (x.op() != Op::Read) return;
      const Member* m = fusion_.find(x);
      const bool is_left_out = but_along && expr::depends_on(x, but_along);
      if (!m) found |= !is_left_out && !inputs_.contains(std::string(x.name().str()));
      if (m && seen.insert(m).second) todo.push_back(m->value);
    });
    if (found) return true;
  }
  return false;
}

bool NestBuilder::is_zero_filled(size_t k, Expr axis) {
  const Dot* d = fusion_.dot_of(k);
  if (!d || d->depth != axis) return false;
  const bool is_open = may_be_empty(axis);
  for (Expr f : d->a) {
    if (is_open && reads_results(f)) return false;
    const Limit x =
        limit_beyond(fusion_, f, axis == fusion_.stream ? guards_ : kNoGuards, signs_, pool_);
    if (x != Limit::Finite && x != Limit::Zero) return false;
  }
  return true;
}

Expr NestBuilder::number(double value, DType dtype) {
  if (is_float(dtype)) return pool_.floating(value, dtype);
  return pool_.constant(value, dtype);
}

Expr NestBuilder::identity_of(const Member& m) {
  const expr::Value v = expr::identity(m.reducer, m.dtype);
  if (is_float(m.dtype)) return pool_.floating(v.f, m.dtype);
  return m.dtype == DType::Bool ? pool_.boolean(v.i != 0) : pool_.integer(v.i, m.dtype);
}

Expr NestBuilder::in_stream() {
  Expr in_range = tiling_.at(fusion_.stream).in_range;
  // The loop has a first step where an outer axis is empty, too.
  for (Expr a : fusion_.outer) {
    const Expr extent = fusion_.extents.at(a);
    if (!in_range || extent.op() == Op::IntConst) continue;
    in_range = pool_.binary(Op::And, in_range, pool_.binary(Op::Gt, extent, pool_.integer(0)));
  }
  return in_range && range_.live.listed ? pool_.binary(Op::Or, range_.live.full, in_range)
                                        : in_range;
}

Expr NestBuilder::term(size_t k, Expr axis, ir::Block& out, Phase phase) {
  const Member& m = member(k);
  const Expr in_range = axis == fusion_.stream ? in_stream() : tiling_.at(axis).in_range;
  const bool is_own =
      in_range && (axis == fusion_.stream ? own_guard_.contains(k) : !is_zero_filled(k, axis));
  const Dot* d = fusion_.dot_of(k);
  if (!d) {
    const Expr value = translated(m.value, phase);
    return is_own ? pool_.select(in_range, value, identity_of(m)) : value;
  }
  Expr a;
  for (Expr f : d->a) a = a ? pool_.binary(Op::Mul, a, f) : f;
  const bool is_member = d->a.size() == 1 && index_of(a) && local_[*index_of(a)];
  Expr operand = translated(a, phase);
  const bool is_plain = is_member || d->is_plain();
  // Boxes are filled with zeros outside the axis; a value of the kernel has what its other
  // readers need there.
  const Expr held = d->a.size() == 1 && a.op() == Op::Cast ? a[0] : a;
  const bool is_local =
      is_member || (d->a.size() == 1 && index_of(held) && local_[*index_of(held)]);
  if (!is_plain || (is_own && is_local)) {
    if (is_own) operand = pool_.select(in_range, operand, pool_.constant(0, operand.dtype()));
    const Local tile =
        make_local(fmt::format("{}.a", m.target.str()), operand.dtype(), {fusion_.row, axis});
    emit_store(out, tile, operand);
    operand = local_read(tile, operand.dtype());
  }
  return pool_.binary(Op::Mul, operand, translated(d->b, phase));
}

void NestBuilder::before(size_t k, ir::Block& out) {
  const Member& m = member(k);
  if (places_[k] == Place::Before) tile(k, out, Phase::Before);
  if (places_[k] != Place::Rolled) return;
  // The initial element is taken once, where parts come together.
  const Expr init = split_ ? identity_of(m) : translated(m.init, Phase::Before);
  emit_reduction(out, *local_[k], init, {}, m.reducer, {});
  if (recurrences_[k].shift) start_references(k, out);
}

void NestBuilder::tile(size_t k, ir::Block& out, Phase phase) {
  const Member& m = member(k);
  const auto guard = std::find_if(guards_.begin(), guards_.end(),
                                  [&](const RangeGuard& g) { return g.member == k; });
  const bool is_guarded = guard != guards_.end();
  const Expr in_range = in_stream();
  if (!m.inner.empty()) {
    const Expr value = term(k, m.inner[0], out, phase);
    emit_reduction(out, *local_[k], translated(m.init, phase), m.inner[0], m.reducer, value);
    if (!is_guarded) return;
    const Local inside = make_local(fmt::format("{}.in", m.target.str()), m.dtype, local_[k]->axes);
    emit_store(
        out, inside,
        pool_.select(in_range, local_read(*local_[k], m.dtype), number(guard->value, m.dtype)));
    local_[k] = inside;
    return;
  }
  Expr value = translated(m.value, phase);
  if (is_guarded) {
    const bool is_select = value.op() == Op::Select && m.value.op() == Op::Select &&
                           value[2].op() == Op::FloatConst && value[2].number() == guard->value;
    value = is_select ? pool_.select(both(value[0], in_range), value[1], value[2])
                      : pool_.select(in_range, value, number(guard->value, m.dtype));
  }
  emit_store(out, *local_[k], value);
}

}  // namespace nautilus::schedule

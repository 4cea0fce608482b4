// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_terms.h"

#include <fmt/format.h>

namespace nautilus::schedule {

using expr::Op;

Expr NestTerms::term(size_t k, Expr axis, ir::Block& out, NestPhase phase) {
  const Member& m = f_.member(k);
  const Expr in_range =
      axis == f_.fusion.stream ? guards_.in_stream() : f_.tiling.at(axis).in_range;
  const bool is_own = in_range && guards_.is_own(k, axis);
  const Dot* d = f_.fusion.dot_of(k);
  if (!d) {
    const Expr value = translation_.translated(m.value, phase);
    return is_own ? f_.pool.select(in_range, value, f_.identity_of(m)) : value;
  }
  if (f_.fusion.has_several(*d)) {
    // Operands in their memory layout, with zeros outside.
    Expr sum;
    for (const Dot& one : f_.fusion.dots_of(k)) {
      const Expr product = f_.pool.binary(Op::Mul, translation_.translated(one.a[0], phase),
                                          translation_.translated(one.b, phase));
      sum = sum ? f_.pool.binary(Op::Add, sum, product) : product;
    }
    return sum;
  }
  Expr a;
  for (Expr f : d->a) a = a ? f_.pool.binary(Op::Mul, a, f) : f;
  const bool is_member = d->a.size() == 1 && f_.index_of(a) && f_.placed[*f_.index_of(a)].tile;
  Expr operand = translation_.translated(a, phase);
  const bool is_plain = is_member || d->is_plain();
  // Boxes are filled with zeros outside the axis; a value of the kernel has what its other
  // readers need there.
  const Expr held = d->a.size() == 1 && a.op() == Op::Cast ? a[0] : a;
  const bool is_local =
      is_member || (d->a.size() == 1 && f_.index_of(held) && f_.placed[*f_.index_of(held)].tile);
  if (!is_plain || (is_own && is_local)) {
    if (is_own) operand = f_.pool.select(in_range, operand, f_.pool.constant(0, operand.dtype()));
    const LocalTile tile =
        f_.tiles.make(fmt::format("{}.a", m.target.str()), operand.dtype(), {f_.fusion.row, axis});
    f_.tiles.emit_store(out, tile, operand);
    operand = f_.tiles.read(tile, operand.dtype());
  }
  Expr product = f_.pool.binary(Op::Mul, operand, translation_.translated(d->b, phase));
  for (Expr scale : d->scales)
    product = f_.pool.binary(Op::Mul, product, translation_.translated(scale, phase));
  return product;
}

void NestTerms::tile(size_t k, ir::Block& out, NestPhase phase) {
  const Member& m = f_.member(k);
  const RangeGuard* guard = guards_.find(k);
  const Expr in_range = guards_.in_stream();
  if (!m.inner.empty()) {
    const Expr value = term(k, m.inner[0], out, phase);
    f_.tiles.emit_reduction(out, *f_.placed[k].tile, translation_.translated(m.init, phase),
                            m.inner[0], m.reducer, value);
    if (!guard) return;
    const LocalTile inside =
        f_.tiles.make(fmt::format("{}.in", m.target.str()), m.dtype, f_.placed[k].tile->axes);
    f_.tiles.emit_store(out, inside,
                        f_.pool.select(in_range, f_.tiles.read(*f_.placed[k].tile, m.dtype),
                                       f_.number(guard->value, m.dtype)));
    f_.placed[k].tile = inside;
    return;
  }
  Expr value = translation_.translated(m.value, phase);
  if (guard) {
    const bool is_select = value.op() == Op::Select && m.value.op() == Op::Select &&
                           value[2].op() == Op::FloatConst && value[2].number() == guard->value;
    value = is_select ? f_.pool.select(f_.both(value[0], in_range), value[1], value[2])
                      : f_.pool.select(in_range, value, f_.number(guard->value, m.dtype));
  }
  f_.tiles.emit_store(out, *f_.placed[k].tile, value);
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "vrtile/weights.h"

#include <numbers>

#include "expr/walk.h"
#include "vrtile/finite.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

using expr::Expr;
using ir::Op;
using EK = expr::Op;
using Kind_ = Weight::Kind;

namespace {

constexpr double kLog2E = std::numbers::log2e;

Weight bad() { return {.kind = Kind_::Bad}; }
Weight plain() { return {.kind = Kind_::Plain}; }
Weight zero() { return {.kind = Kind_::Zero}; }

Weight normal(Weight w) {
  if (w.is_weighted() && w.old.is_zero() && w.now.is_zero()) return plain();
  return w;
}

Weight scaled_by(const Weight& w, double x) {
  Weight out = w;
  out.old = w.old.times(x);
  out.now = w.now.times(x);
  return out;
}

Weight combined(const Weight& a, const Weight& b, double sign) {
  if (a.row && b.row && a.row != b.row) return bad();
  Weight out{a.kind, a.old + b.old.times(sign), a.now + b.now.times(sign), a.row ? a.row : b.row};
  return normal(out);
}

bool is_equal(const Weight& a, const Weight& b) {
  return a.kind == b.kind && a.old == b.old && a.now == b.now && a.row == b.row;
}

// The weight of a value that is one of two.
Weight either(const Weight& a, const Weight& b) {
  if (a.kind == Kind_::Zero) return b;
  if (b.kind == Kind_::Zero) return a;
  return is_equal(a, b) ? a : bad();
}

bool is_zero_constant(Expr e) { return e.op() == EK::FloatConst && e.number() == 0; }

}  // namespace

TileWeight Weights::of(ir::Name tile) const {
  const auto it = tiles_.find(tile);
  return it == tiles_.end() ? TileWeight{plain(), 0} : it->second;
}

TileWeight Weights::placed(const Weight& w, const ir::Axes& axes) const {
  if (!w.is_weighted()) return {w, 0};
  for (size_t k = 0; k < axes.size(); ++k) {
    if (w.row == pool_.index(axes[k].name)) {
      Weight out = w;
      out.row = {};
      return {out, k};
    }
  }
  return {bad(), 0};
}

void Weights::add(const Op& op) {
  if (const auto* s = op.get<Set>()) {
    set(s->name, placed(of(s->value), s->axes));
  } else if (const auto* r = op.get<Reduce>()) {
    set(r->name, placed(of(r->value), r->axes));
  } else if (const auto* l = op.get<Load>()) {
    Weight w = plain();
    for (Expr i : l->value.args()) {
      if (of(i).kind != Kind_::Plain && of(i).kind != Kind_::Zero) w = bad();
    }
    for (Expr e : {l->condition, l->other}) {
      if (e && of(e).kind != Kind_::Plain && of(e).kind != Kind_::Zero) w = bad();
    }
    set(l->name, {w, 0});
  } else if (const auto* d = op.get<Dot>()) {
    TileWeight a = of(d->a);
    TileWeight b = of(d->b);
    const size_t depth_b = d->trans == Trans::Yes ? 1 : 0;
    if ((a.weight.is_weighted() && a.dim == 1) || (b.weight.is_weighted() && b.dim == depth_b) ||
        (a.weight.is_weighted() && b.weight.is_weighted()) || a.weight.kind == Kind_::Bad ||
        b.weight.kind == Kind_::Bad || a.weight.kind == Kind_::Shifted ||
        b.weight.kind == Kind_::Shifted) {
      set(d->name, {bad(), 0});
      return;
    }
    TileWeight out{plain(), 0};
    if (a.weight.is_weighted()) out = {a.weight, 0};
    if (b.weight.is_weighted()) out = {b.weight, 1};
    if (a.weight.kind == Kind_::Zero || b.weight.kind == Kind_::Zero) out = {zero(), 0};
    if (d->acc) {
      const TileWeight acc = of(d->acc);
      const bool is_same =
          acc.weight.kind == Kind_::Zero || out.weight.kind == Kind_::Zero ||
          (is_equal(acc.weight, out.weight) && (!out.weight.is_weighted() || acc.dim == out.dim));
      if (!is_same) {
        out = {bad(), 0};
      } else if (out.weight.kind == Kind_::Zero) {
        out = acc;
      }
    }
    set(d->name, out);
  }
}

Weight Weights::of(Expr e) const {
  switch (e.op()) {
    case EK::FloatConst:
      return e.number() == 0 ? zero() : plain();
    case EK::IntConst:
    case EK::BoolConst:
    case EK::Var:
      return plain();
    case EK::Read: {
      for (Expr i : e.args()) {
        if (of(i).kind != Kind_::Plain) return bad();
      }
      const TileWeight t = of(e.name());
      Weight w = t.weight;
      if (w.is_weighted()) w.row = e[t.dim];
      return w;
    }
    default:
      return operation(e);
  }
}

Weight Weights::operation(Expr e) const {
  switch (e.op()) {
    case EK::Mul:
      return product(e);
    case EK::Div:
      return quotient(e);
    case EK::Add:
    case EK::Sub:
      return sum(e);
    case EK::Select:
      return choice(e);
    case EK::Reduce:
      return reduction(e);
    case EK::Max:
    case EK::Min:
      return extreme(e);
    default:
      break;
  }
  if (expr::is_comparison(e.op())) return comparison(e);
  if (e.args().size() == 1) return function(e);
  for (Expr a : e.args()) {
    const Weight x = of(a);
    if (x.kind != Kind_::Plain && x.kind != Kind_::Zero) return bad();
  }
  return plain();
}

Weight Weights::extreme(Expr e) const {
  const Weight a = of(e[0]);
  const Weight b = of(e[1]);
  if (is_infinity(e[0]) && b.kind == Kind_::Shifted) return b;
  if (is_infinity(e[1]) && a.kind == Kind_::Shifted) return a;
  // The least of 0 and a shifted value is not shifted.
  if ((a.kind == Kind_::Zero && b.kind == Kind_::Shifted) ||
      (b.kind == Kind_::Zero && a.kind == Kind_::Shifted))
    return bad();
  if (a.kind == Kind_::Zero && b.kind == Kind_::Plain) return plain();
  return either(a, b);
}

Weight Weights::function(Expr e) const {
  const Weight x = of(e[0]);
  if (x.kind == Kind_::Bad) return x;
  if (!x.is_weighted()) {
    const bool keeps_zero = e.op() == EK::Neg || e.op() == EK::Cast || e.op() == EK::Abs;
    return x.kind == Kind_::Zero && keeps_zero ? zero() : plain();
  }
  const bool is_scaled = x.kind == Kind_::Scaled;
  switch (e.op()) {
    case EK::Neg:
      return is_scaled ? x : scaled_by(x, -1);
    case EK::Cast:
      // Eight bits have too small a range for another reference.
      return expr::is_float(e.dtype()) && expr::bytes(e.dtype()) >= 2 ? x : bad();
    case EK::Abs:
      return is_scaled ? x : bad();
    case EK::Exp2:
    case EK::Exp: {
      if (is_scaled) return bad();
      Weight out = e.op() == EK::Exp ? scaled_by(x, kLog2E) : x;
      out.kind = Kind_::Scaled;
      return out;
    }
    case EK::Log2:
    case EK::Log: {
      if (!is_scaled) return bad();
      Weight out = e.op() == EK::Log ? scaled_by(x, 1 / kLog2E) : x;
      out.kind = Kind_::Shifted;
      return out;
    }
    case EK::Sqrt:
      return is_scaled ? scaled_by(x, 0.5) : bad();
    case EK::Rsqrt:
      return is_scaled ? scaled_by(x, -0.5) : bad();
    default:
      return bad();
  }
}

Weight Weights::product(Expr e) const {
  const Weight a = of(e[0]);
  const Weight b = of(e[1]);
  if (a.kind == Kind_::Bad || b.kind == Kind_::Bad) return bad();
  if (a.kind == Kind_::Zero || b.kind == Kind_::Zero) return zero();
  if (a.kind == Kind_::Shifted || b.kind == Kind_::Shifted) {
    const bool is_first = a.kind == Kind_::Shifted;
    if ((is_first ? b : a).kind != Kind_::Plain) return bad();
    Weight out = is_first ? a : b;
    const auto old = out.old.times(is_first ? e[1] : e[0]);
    const auto now = out.now.times(is_first ? e[1] : e[0]);
    if (!old || !now) return bad();
    out.old = *old;
    out.now = *now;
    return normal(out);
  }
  if (a.kind == Kind_::Plain && b.kind == Kind_::Plain) return plain();
  Weight out = combined(a, b, 1);
  if (out.kind == Kind_::Plain && (!out.old.is_zero() || !out.now.is_zero()))
    out.kind = Kind_::Scaled;
  return out;
}

Weight Weights::quotient(Expr e) const {
  const Weight a = of(e[0]);
  const Weight b = of(e[1]);
  if (a.kind == Kind_::Bad || b.kind == Kind_::Bad || b.kind == Kind_::Shifted) return bad();
  if (a.kind == Kind_::Zero) return zero();
  if (a.kind == Kind_::Shifted) {
    if (b.kind != Kind_::Plain || e[1].op() != EK::FloatConst || e[1].number() == 0) return bad();
    return scaled_by(a, 1 / e[1].number());
  }
  if (!a.is_weighted() && !b.is_weighted()) return plain();
  Weight out = combined(a, b, -1);
  if (out.kind == Kind_::Plain && (!out.old.is_zero() || !out.now.is_zero()))
    out.kind = Kind_::Scaled;
  return out;
}

Weight Weights::sum(Expr e) const {
  const Weight a = of(e[0]);
  const Weight b = of(e[1]);
  const double sign = e.op() == EK::Add ? 1 : -1;
  if (a.kind == Kind_::Bad || b.kind == Kind_::Bad) return bad();
  if (a.kind == Kind_::Shifted || b.kind == Kind_::Shifted) {
    if (a.kind == Kind_::Scaled || b.kind == Kind_::Scaled) return bad();
    Weight out = combined(a, b, sign);
    if (out.kind != Kind_::Bad && (!out.old.is_zero() || !out.now.is_zero()))
      out.kind = Kind_::Shifted;
    return out;
  }
  return either(a, b);
}

Weight Weights::choice(Expr e) const {
  const Expr c = e[0];
  const Weight condition = of(c);
  if (condition.kind != Kind_::Plain && condition.kind != Kind_::Zero) return bad();
  const Weight x = of(e[1]);
  const Weight y = of(e[2]);
  if (x.kind == Kind_::Bad || y.kind == Kind_::Bad) return bad();
  // where(r == -inf, 0, r), or inf for a minimum: a reference that never moved, the same whatever
  // lazy_reference is used.
  if (c.op() == EK::Eq && is_infinity(c[1]) && of(c[0]).kind == Kind_::Shifted && e[1].is_const() &&
      y.kind == Kind_::Shifted)
    return y;
  // where(l == 0, 1, l): a sum of nothing.
  if (c.op() == EK::Eq && is_zero_constant(c[1]) && c[0] == e[2] && e[1].is_const() &&
      y.kind == Kind_::Scaled)
    return y;
  if (is_infinity(e[1]) && y.kind == Kind_::Shifted) return y;
  if (is_infinity(e[2]) && x.kind == Kind_::Shifted) return x;
  // 0 stands for itself unless it is scaled by nothing.
  if ((x.kind == Kind_::Zero && y.kind == Kind_::Shifted) ||
      (y.kind == Kind_::Zero && x.kind == Kind_::Shifted))
    return bad();
  return either(x, y);
}

Weight Weights::comparison(Expr e) const {
  const Weight a = of(e[0]);
  const Weight b = of(e[1]);
  const auto is_fixed = [](const Weight& w) {
    return w.kind == Kind_::Plain || w.kind == Kind_::Zero;
  };
  if (is_fixed(a) && is_fixed(b)) return plain();
  if (a.kind == Kind_::Scaled && is_zero_constant(e[1])) return plain();
  if (b.kind == Kind_::Scaled && is_zero_constant(e[0])) return plain();
  if (a.kind == Kind_::Shifted && is_infinity(e[1])) return plain();
  if (b.kind == Kind_::Shifted && is_infinity(e[0])) return plain();
  return a.kind != Kind_::Bad && is_equal(a, b) ? plain() : bad();
}

Weight Weights::reduction(Expr e) const {
  const Weight body = of(e.body());
  if (body.kind == Kind_::Bad) return body;
  for (size_t k = 0; k < e.axis_count(); ++k) {
    if (body.row && expr::depends_on(body.row, e.axis(k))) return bad();
  }
  if (!body.is_weighted()) return body;
  switch (e.reducer()) {
    case expr::Reducer::Sum:
      return body.kind == Kind_::Scaled ? body : bad();
    case expr::Reducer::Max:
    case expr::Reducer::Min:
      return body;
    default:
      return bad();
  }
}

}  // namespace nautilus::vrtile

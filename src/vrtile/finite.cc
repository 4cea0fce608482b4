// SPDX-License-Identifier: Apache-2.0
#include "vrtile/finite.h"

#include <cmath>

#include "vrtile/conditions.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

using expr::Expr;
using EK = expr::Op;

bool is_minus_infinity(Expr e) {
  return e.op() == EK::FloatConst && std::isinf(e.number()) && e.number() < 0;
}

bool is_infinity(Expr e) { return e.op() == EK::FloatConst && std::isinf(e.number()); }

void FiniteTiles::add(const ir::Op& op) {
  const ir::Name name = defined(op);
  if (!name) return;
  loads_.erase(name);
  finite_.erase(name);
  above_.erase(name);
  votes_.erase(name);
  if (const auto* l = op.get<Load>()) {
    if (!l->other || is_finite(l->other)) loads_.insert(name);
  } else if (const auto* d = op.get<Dot>()) {
    const auto is_known = [&](ir::Name n) { return finite_.contains(n) || loads_.contains(n); };
    if (is_known(d->a) && is_known(d->b) && (!d->acc || finite_.contains(d->acc)))
      finite_.insert(name);
  } else if (const auto* s = op.get<Set>()) {
    if (is_finite(s->value)) finite_.insert(name);
    if (is_above(s->value)) above_.insert(name);
  } else if (const auto* r = op.get<Reduce>()) {
    const Expr body = r->value.body();
    switch (r->value.reducer()) {
      case expr::Reducer::Max:
      case expr::Reducer::Min:
        if (is_finite(body)) finite_.insert(name);
        if (is_above(body)) above_.insert(name);
        break;
      case expr::Reducer::Sum:
        if (is_finite(body)) finite_.insert(name);
        break;
      case expr::Reducer::Any:
        votes_.insert_or_assign(name, body);
        break;
      default:
        break;
    }
  }
}

bool FiniteTiles::is_finite(Expr e) const {
  if (!expr::is_float(e.dtype())) return true;
  switch (e.op()) {
    case EK::FloatConst:
      return std::isfinite(e.number());
    case EK::Var:
    // An exponential that overflows is an error of the program, not of a pass.
    case EK::Exp:
    case EK::Exp2:
    case EK::Expm1:
    case EK::Sigmoid:
    case EK::Tanh:
    case EK::Erf:
      return true;
    case EK::Read:
      return finite_.contains(e.name());
    case EK::Add:
    case EK::Sub:
    case EK::Mul:
    case EK::Max:
    case EK::Min:
      return is_finite(e[0]) && is_finite(e[1]);
    case EK::Neg:
    case EK::Abs:
    case EK::Cast:
    case EK::Floor:
    case EK::Round:
    case EK::Sin:
    case EK::Cos:
      return is_finite(e[0]);
    case EK::Select:
      return is_finite(e[1]) && is_finite(e[2]);
    default:
      return false;
  }
}

bool FiniteTiles::is_above(Expr e) const {
  if (is_finite(e)) return true;
  switch (e.op()) {
    case EK::Read:
      return above_.contains(e.name());
    case EK::Max:
      return is_above(e[0]) || is_above(e[1]);
    case EK::Min:
      return is_above(e[0]) && is_above(e[1]);
    case EK::Select:
      return is_above(e[1]) && (is_above(e[2]) || follows_growth(e[0], e[2]));
    case EK::Abs:
    case EK::Sqrt:
      return true;
    default:
      return false;
  }
}

// condition is a tile any((y - kept) * k > t) with y above -inf and k > 0: where it does not hold,
// kept is not -inf.
bool FiniteTiles::follows_growth(Expr condition, Expr kept) const {
  if (condition.op() != EK::Read || kept.op() != EK::Read) return false;
  const auto it = votes_.find(condition.name());
  if (it == votes_.end()) return false;
  const Expr test = it->second;
  if (test.op() != EK::Gt || test[1].op() != EK::FloatConst) return false;
  const Expr growth = test[0];
  if (growth.op() != EK::Mul || growth[0].op() != EK::Sub) return false;
  const Expr old = growth[0][1];
  return old.op() == EK::Read && old.name() == kept.name() && is_above(growth[0][0]) &&
         is_positive(*program_, growth[1]);
}

}  // namespace nautilus::vrtile

// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/lane_shares.h"

#include <fmt/format.h>

namespace nautilus::matile {

using expr::Expr;
using expr::Reducer;
using EK = expr::Op;

Held either(const Held& a, const Held& b) {
  if (a.kind == Held::Kind::Nothing || a.kind == Held::Kind::Mixed)
    return a.kind == Held::Kind::Nothing ? b : a;
  if (b.kind == Held::Kind::Nothing || b.kind == Held::Kind::Mixed)
    return b.kind == Held::Kind::Nothing ? a : b;
  if (a.is_like(b)) return a;
  if (!a.has_shares() && !b.has_shares()) return whole();
  if (a.kind == Held::Kind::Own || b.kind == Held::Kind::Own) {
    Held own = a.kind == Held::Kind::Own ? a : b;
    own.bits |= a.bits | b.bits;
    return own;
  }
  Held out = a.has_shares() ? a : b;
  const Held& other = a.has_shares() ? b : a;
  if (out.is_sum() ? other.is_number(0) : !other.has_shares()) return out;
  if (out.is_extreme() && other.is_extreme() && out.reducer == other.reducer) {
    out.bits |= other.bits;
    return out;
  }
  out.kind = Held::Kind::Mixed;
  return out;
}

bool is_like(const HeldByTiles& a, const HeldByTiles& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, held] : a) {
    const auto it = b.find(name);
    if (it == b.end() || !it->second.is_like(held)) return false;
  }
  return true;
}

HeldByTiles either(HeldByTiles a, const HeldByTiles& b) {
  for (const auto& [name, held] : b) a[name] = either(a[name], held);
  return a;
}

namespace {

Held negative(Held a) {
  if (a.is_extreme()) a.reducer = a.reducer == Reducer::Max ? Reducer::Min : Reducer::Max;
  if (a.kind == Held::Kind::Number) a.number = -a.number;
  return a;
}

}  // namespace

Held ShareRules::value(Expr e, std::unordered_map<Expr, Held> known) {
  known_ = std::move(known);
  return operand(e);
}

Held ShareRules::operand(Expr e) {
  if (const auto it = known_.find(e); it != known_.end()) return it->second;
  Held held = value_of(e);
  known_.emplace(e, held);
  return held;
}

void ShareRules::need_whole(const Held& held, std::string_view is_used) {
  if (held.has_shares()) refuse_(held, is_used);
}

Held ShareRules::refused(const Held& a, const Held& b, std::string_view is_used) {
  need_whole(a.has_shares() ? a : b, is_used);
  return whole();
}

Held ShareRules::value_of(Expr e) {
  if (e.op() == EK::FloatConst) return {.kind = Held::Kind::Number, .number = e.number()};
  if (e.op() == EK::Read) {
    for (Expr a : e.args()) need_whole(operand(a), "is part of an index");
    const auto it = tiles_.find(e.name().str());
    return it == tiles_.end() ? whole() : it->second;
  }
  if (e.args().empty() || e.op() == EK::Reduce) return whole();
  const Held a = operand(e[0]);
  const Held b = e.args().size() > 1 ? operand(e[1]) : Held{};
  switch (e.op()) {
    case EK::Neg:
      return negative(a);
    case EK::Add:
      return sum(a, b);
    case EK::Sub:
      return sum(a, negative(b));
    case EK::Mul:
      if (a.is_number(0) && !b.has_shares()) return a;
      if (b.is_number(0) && !a.has_shares()) return b;
      return a.has_shares() ? scaled(a, b, e[1]) : scaled(b, a, e[0]);
    case EK::Div:
      if (b.has_shares()) return refused(b, b, "is a divisor");
      return scaled(a, b, e[1]);
    case EK::Exp:
    case EK::Exp2:
      return a.is_extreme() ? a : refused_in(e, a, a);
    case EK::Max:
    case EK::Min:
      return extreme(e, a, b);
    case EK::Select: {
      need_whole(a, "is part of a condition");
      const Held c = operand(e[2]);
      const Held out = either(b, c);
      if (out.kind != Held::Kind::Mixed) return out;
      if (b.kind == Held::Kind::Mixed || c.kind == Held::Kind::Mixed)
        return refused(b, c, "is chosen");
      return refused(b, c, "is chosen beside a value that every lane has");
    }
    default: {
      Held all = whole();
      for (Expr arg : e.args()) {
        const Held held = operand(arg);
        if (held.has_shares()) all = refused_in(e, held, held);
      }
      return all;
    }
  }
}

Held ShareRules::refused_in(Expr e, const Held& a, const Held& b) {
  if (!a.has_shares() && !b.has_shares()) return whole();
  const std::string is_used = e.op() == EK::Cast
                                  ? fmt::format("is rounded to {}", expr::name(e.dtype()))
                                  : fmt::format("is an operand of `{}`", expr::info(e.op()).text);
  return refused(a, b, is_used);
}

Held ShareRules::sum(const Held& a, const Held& b) {
  if (a.kind == Held::Kind::Number && b.kind == Held::Kind::Number)
    return {.kind = Held::Kind::Number, .number = a.number + b.number};
  if (!a.has_shares() && !b.has_shares()) return whole();
  if (a.is_extreme() || b.is_extreme()) {
    if (!b.has_shares()) return a;
    if (!a.has_shares()) return b;
    return refused(a, b, "is added to other shares");
  }
  if (a.is_sum() && (b.is_number(0) || a.is_like(b))) return a;
  if (b.is_sum() && a.is_number(0)) return b;
  if (a.is_sum() && b.is_sum()) return refused(a, b, "is added to shares of other lanes");
  return refused(a, b, "is added to a value that every lane has");
}

Held ShareRules::scaled(const Held& a, const Held& factor, Expr e) {
  if (!a.has_shares() && !factor.has_shares()) return whole();
  if (factor.has_shares()) return refused(a, factor, "is multiplied by other shares");
  if (a.is_sum() || (a.is_extreme() && positive_.contains(e))) return a;
  return refused(a, a, "is multiplied by what may be negative");
}

Held ShareRules::extreme(Expr e, const Held& a, const Held& b) {
  if (!a.has_shares() && !b.has_shares()) return whole();
  if (!a.has_shares() || !b.has_shares()) {
    const Held& held = a.has_shares() ? a : b;
    return held.is_extreme() ? held : refused_in(e, a, b);
  }
  const bool is_same = a.is_extreme() && b.is_extreme() && a.reducer == b.reducer &&
                       (a.reducer == Reducer::Max) == (e.op() == EK::Max);
  return is_same ? either(a, b) : refused_in(e, a, b);
}

}  // namespace nautilus::matile

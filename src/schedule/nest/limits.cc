// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/limits.h"

#include <cmath>

namespace nautilus::schedule {

using expr::Expr;
using expr::Op;

Limit limit_of(double value) {
  if (value == 0) return Limit::Zero;
  if (std::isinf(value)) return value < 0 ? Limit::MinusInf : Limit::PlusInf;
  return std::isnan(value) ? Limit::Unknown : Limit::Finite;
}

namespace {

bool is_infinite(Limit x) { return x == Limit::MinusInf || x == Limit::PlusInf; }
bool is_bounded(Limit x) { return x == Limit::Zero || x == Limit::Finite; }
Limit negated(Limit x) {
  return x == Limit::MinusInf ? Limit::PlusInf : x == Limit::PlusInf ? Limit::MinusInf : x;
}

class Evaluator {
 public:
  Evaluator(const std::unordered_map<Expr, Limit>& values, const algebra::Signs& signs)
      : values_(values), signs_(signs) {}

  Limit of(Expr e) {
    if (const auto it = values_.find(e); it != values_.end()) return it->second;
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    const Limit x = compute(e);
    memo_.emplace(e, x);
    return x;
  }

 private:
  Limit compute(Expr e) {
    if (!is_float(e.dtype())) return Limit::Unknown;
    switch (e.op()) {
      case Op::FloatConst:
        return limit_of(e.number());
      case Op::Var:
      case Op::Read:
        return Limit::Finite;
      case Op::Cast:
        return is_float(e[0].dtype()) ? of(e[0]) : Limit::Finite;
      case Op::Neg:
        return negated(of(e[0]));
      case Op::Add:
        return sum(of(e[0]), of(e[1]));
      case Op::Sub:
        return sum(of(e[0]), negated(of(e[1])));
      case Op::Mul:
        return product(e);
      case Op::Div: {
        const Limit x = of(e[0]);
        if (signs_.is_positive(e[1])) return x;
        // 0 / nonzero(...) is 0; other divisors may vanish.
        return Limit::Unknown;
      }
      case Op::Exp:
      case Op::Exp2:
      case Op::Expm1:
      case Op::Log1p:
      case Op::Sigmoid:
      case Op::Tanh:
      case Op::Erf:
      case Op::Abs:
      case Op::Sin:
      case Op::Cos:
        return function(e.op(), of(e[0]));
      case Op::Max:
      case Op::Min:
        return extreme(of(e[0]), of(e[1]), e.op() == Op::Max ? Limit::MinusInf : Limit::PlusInf);
      case Op::Select: {
        const Limit x = of(e[1]);
        const Limit y = of(e[2]);
        if (x == y) return x;
        return is_bounded(x) && is_bounded(y) ? Limit::Finite : Limit::Unknown;
      }
      default:
        return Limit::Unknown;
    }
  }

  static Limit function(Op op, Limit x) {
    switch (op) {
      case Op::Exp:
      case Op::Exp2:
        return x == Limit::MinusInf  ? Limit::Zero
               : x == Limit::PlusInf ? Limit::PlusInf
                                     : Limit::Unknown;
      case Op::Expm1:
        return x == Limit::MinusInf ? Limit::Finite : x == Limit::Finite ? Limit::Unknown : x;
      case Op::Log1p:
        return x == Limit::Zero || x == Limit::PlusInf ? x : Limit::Unknown;
      case Op::Sigmoid:
        return x == Limit::MinusInf  ? Limit::Zero
               : x == Limit::Unknown ? Limit::Unknown
                                     : Limit::Finite;
      case Op::Tanh:
      case Op::Erf:
        return x == Limit::Zero      ? Limit::Zero
               : x == Limit::Unknown ? Limit::Unknown
                                     : Limit::Finite;
      case Op::Abs:
        return is_infinite(x) ? Limit::PlusInf : x;
      case Op::Sin:
      case Op::Cos:
        return is_bounded(x) ? Limit::Finite : Limit::Unknown;
      default:
        return Limit::Unknown;
    }
  }

  // `weak`: what the other one always wins against.
  static Limit extreme(Limit x, Limit y, Limit weak) {
    if (x == weak) return y;
    if (y == weak) return x;
    if (x == Limit::Zero && y == Limit::Zero) return Limit::Zero;
    return is_bounded(x) && is_bounded(y) ? Limit::Finite : Limit::Unknown;
  }

  static Limit sum(Limit x, Limit y) {
    if (x == Limit::Unknown || y == Limit::Unknown) return Limit::Unknown;
    if (is_infinite(x)) return is_bounded(y) || x == y ? x : Limit::Unknown;
    if (is_infinite(y)) return y;
    return x == Limit::Zero && y == Limit::Zero ? Limit::Zero : Limit::Finite;
  }

  Limit product(Expr e) {
    const Limit x = of(e[0]);
    const Limit y = of(e[1]);
    if (x == Limit::Unknown || y == Limit::Unknown) return Limit::Unknown;
    if (is_bounded(x) && is_bounded(y))
      return x == Limit::Zero || y == Limit::Zero ? Limit::Zero : Limit::Finite;
    if (is_infinite(x) && signs_.is_positive(e[1])) return x;
    if (is_infinite(y) && signs_.is_positive(e[0])) return y;
    return Limit::Unknown;
  }

  const std::unordered_map<Expr, Limit>& values_;
  const algebra::Signs& signs_;
  std::unordered_map<Expr, Limit> memo_;
};

}  // namespace

Limit limit_of(Expr e, const std::unordered_map<Expr, Limit>& values, const algebra::Signs& signs) {
  return Evaluator(values, signs).of(e);
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "algebra/vanishing.h"

#include <algorithm>
#include <cmath>

#include "expr/walk.h"

namespace nautilus::algebra {
namespace {

using expr::Expr;
using expr::Op;

// What is known of a value: it is 0, some finite number, one of the infinities, or nothing.
enum class Known : uint8_t { Zero, Finite, Bottom, Top, Nothing };

Known negated(Known x) {
  if (x == Known::Bottom) return Known::Top;
  return x == Known::Top ? Known::Bottom : x;
}

bool is_infinite(Known x) { return x == Known::Bottom || x == Known::Top; }
bool is_finite(Known x) { return x == Known::Zero || x == Known::Finite; }

class Limits {
 public:
  Limits(const std::unordered_map<Expr, double>& at, const Signs& signs) : at_(at), signs_(signs) {}

  Known of(Expr e) {
    if (const auto it = memo_.find(e); it != memo_.end()) return it->second;
    const auto given = at_.find(e);
    const Known k = given != at_.end() ? constant(given->second) : compute(e);
    memo_.emplace(e, k);
    return k;
  }

 private:
  static Known constant(double x) {
    if (std::isnan(x)) return Known::Nothing;
    if (std::isinf(x)) return x < 0 ? Known::Bottom : Known::Top;
    return x == 0 ? Known::Zero : Known::Finite;
  }

  Known compute(Expr e) {
    switch (e.op()) {
      case Op::FloatConst:
        return constant(e.number());
      case Op::Read:
      case Op::Var:
      case Op::IntConst:
        return Known::Finite;
      case Op::Cast:
        return of(e[0]);
      case Op::Neg:
        return negated(of(e[0]));
      case Op::Add:
        return sum(of(e[0]), of(e[1]));
      case Op::Sub:
        return sum(of(e[0]), negated(of(e[1])));
      case Op::Mul:
        return product(e[0], e[1]);
      case Op::Div:
        return quotient(e[0], e[1]);
      case Op::Exp:
      case Op::Exp2: {
        const Known x = of(e[0]);
        return x == Known::Bottom ? Known::Zero : is_finite(x) ? Known::Finite : Known::Nothing;
      }
      case Op::Select: {
        const Known x = of(e[1]);
        const Known y = of(e[2]);
        if (x == y) return x;
        return is_finite(x) && is_finite(y) ? Known::Finite : Known::Nothing;
      }
      default:
        return std::all_of(e.args().begin(), e.args().end(),
                           [&](Expr a) { return is_finite(of(a)); })
                   ? Known::Finite
                   : Known::Nothing;
    }
  }

  static Known sum(Known x, Known y) {
    if (is_infinite(x)) return is_finite(y) || x == y ? x : Known::Nothing;
    if (is_infinite(y)) return is_finite(x) ? y : Known::Nothing;
    if (!is_finite(x) || !is_finite(y)) return Known::Nothing;
    return x == Known::Zero ? y : y == Known::Zero ? x : Known::Finite;
  }

  Known product(Expr a, Expr b) {
    const Known x = of(a);
    const Known y = of(b);
    if (is_finite(x) && is_finite(y))
      return x == Known::Zero || y == Known::Zero ? Known::Zero : Known::Finite;
    if ((x == Known::Zero && is_infinite(y)) || (y == Known::Zero && is_infinite(x)))
      return Known::Zero;  // or NaN, wherever it is computed
    if (is_infinite(x)) return scaled(x, b);
    return is_infinite(y) ? scaled(y, a) : Known::Nothing;
  }

  Known quotient(Expr a, Expr b) {
    const Known x = of(a);
    if (!is_finite(of(b))) return Known::Nothing;
    return is_infinite(x) ? scaled(x, b) : x;
  }

  Known scaled(Known infinite, Expr by) {
    if (of(by) != Known::Finite) return Known::Nothing;
    if (by.op() == Op::FloatConst && by.number() < 0) return negated(infinite);
    return signs_.is_positive(by) ? infinite : Known::Nothing;
  }

  const std::unordered_map<Expr, double>& at_;
  const Signs& signs_;
  std::unordered_map<Expr, Known> memo_;
};

}  // namespace

bool vanishes_at(Expr term, const std::unordered_map<Expr, double>& at, const Signs& signs) {
  return Limits(at, signs).of(term) == Known::Zero;
}

}  // namespace nautilus::algebra

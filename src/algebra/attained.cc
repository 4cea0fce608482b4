// SPDX-License-Identifier: Apache-2.0
#include "algebra/attained.h"

#include <algorithm>

#include "expr/scalar_ops.h"

namespace nautilus::algebra {
namespace {

using expr::Expr;
using expr::Op;

class Stripper {
 public:
  Stripper(expr::ExprPool& pool, expr::Reducer reducer,
           const std::function<bool(Expr m, Expr x, bool is_maximum)>& is_extreme_of)
      : pool_(pool), reducer_(reducer), is_extreme_of_(is_extreme_of) {}

  Expr strip(Expr e) {
    if (!is_float(e.dtype()) || ++steps_ > kMaxSteps) return e;
    if (e.op() == Op::Select && is_identity(e[2])) {
      bool is_found = false;
      const Expr rest = condition(e[0], is_found);
      if (!is_found) return e;
      const Expr inner = strip(e[1]);
      return rest ? pool_.select(rest, inner, e[2]) : inner;
    }
    if (reducer_ != expr::Reducer::Sum) return e;
    if (e.op() == Op::Mul) return pool_.binary(Op::Mul, strip(e[0]), strip(e[1]));
    if (e.op() == Op::Div) return pool_.binary(Op::Div, strip(e[0]), e[1]);
    if (e.op() == Op::Neg) return pool_.unary(Op::Neg, strip(e[0]));
    return e;
  }

  std::vector<Expr> extremes;

 private:
  static constexpr int kMaxSteps = 1000;

  bool is_identity(Expr e) const {
    return e.op() == Op::FloatConst && e.number() == expr::identity(reducer_, e.dtype()).f;
  }

  // The rest of the condition; null: nothing.
  Expr condition(Expr c, bool& is_found) {
    if (++steps_ > kMaxSteps) return c;
    if (c.op() == Op::And) {
      const Expr a = condition(c[0], is_found);
      const Expr b = condition(c[1], is_found);
      return !a ? b : !b ? a : pool_.binary(Op::And, a, b);
    }
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const bool is_equal = c.op() == Op::Eq;
      // x >= m, m <= x for a maximum: no element is beyond it.
      const bool is_above = c.op() == (k == 0 ? Op::Ge : Op::Le);
      const bool is_below = c.op() == (k == 0 ? Op::Le : Op::Ge);
      if (!is_equal && !is_above && !is_below) continue;
      for (const bool is_maximum : {true, false}) {
        if (!is_equal && is_maximum != is_above) continue;
        if (!is_extreme_of_(c[1 - k], c[k], is_maximum)) continue;
        is_found = true;
        if (std::find(extremes.begin(), extremes.end(), c[1 - k]) == extremes.end())
          extremes.push_back(c[1 - k]);
        return {};
      }
    }
    return c;
  }

  expr::ExprPool& pool_;
  expr::Reducer reducer_;
  const std::function<bool(Expr, Expr, bool)>& is_extreme_of_;
  int steps_ = 0;
};

}  // namespace

AttainedTerms without_attained(
    expr::ExprPool& pool, expr::Expr term, expr::Reducer reducer,
    const std::function<bool(Expr m, Expr x, bool is_maximum)>& is_extreme_of) {
  Stripper stripper(pool, reducer, is_extreme_of);
  const Expr rest = stripper.strip(term);
  return {rest, std::move(stripper.extremes)};
}

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/weight_terms.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "expr/walk.h"

namespace nautilus::matile {

using expr::Expr;
using EK = expr::Op;

bool is_guard(Expr x) {
  if (x.op() != EK::Select || x[1].op() != EK::FloatConst) return false;
  const Expr c = x[0];
  return c.op() == EK::Eq && c[0].op() == EK::Read && c[0].args().size() == 1 &&
         c[0][0].op() == EK::Var && c[1].op() == EK::FloatConst && std::isinf(c[1].number());
}

Expr with_far_guards(Expr e, const std::vector<Expr>& unset, expr::ExprPool& pool) {
  return expr::rebuild(pool, e, [&](Expr x) {
    if (!is_guard(x)) return x;
    const Expr m = x[0][0];
    const bool is_one =
        std::any_of(unset.begin(), unset.end(), [&](Expr c) { return c[0].name() == m.name(); });
    if (!is_one) return x;
    const double far = std::copysign(std::numeric_limits<float>::max(), x[0][1].number());
    return pool.select(x[0], expr::substitute(pool, x[2], {{m, pool.floating(far, m.dtype())}}),
                       x[2]);
  });
}

bool is_nonnegative(Expr e, const Names& tiles) {
  switch (e.op()) {
    case EK::Exp2:
    case EK::Exp:
    case EK::Abs:
    case EK::Sqrt:
    case EK::Sigmoid:
      return true;
    case EK::FloatConst:
      return e.number() >= 0;
    case EK::Read:
      return tiles.contains(e.name().str());
    case EK::Cast:
      return is_nonnegative(e[0], tiles);
    case EK::Select:
      return is_nonnegative(e[1], tiles) && is_nonnegative(e[2], tiles);
    case EK::Max:
      return is_nonnegative(e[0], tiles) || is_nonnegative(e[1], tiles);
    case EK::Mul:
      return e[0] == e[1] || (is_nonnegative(e[0], tiles) && is_nonnegative(e[1], tiles));
    case EK::Add:
    case EK::Div:
    case EK::Min:
      return is_nonnegative(e[0], tiles) && is_nonnegative(e[1], tiles);
    default:
      return false;
  }
}

Expr summed(const Fold& fold) {
  Expr e = fold.value;
  if (e.op() == EK::Add && e[0].op() == EK::Read && e[0].name() == fold.target) e = e[1];
  const bool is_sum = e.op() == EK::Reduce && e.reducer() == expr::Reducer::Sum &&
                      e.axis_count() == 1 && e.dtype() == expr::DType::F32;
  return is_sum ? e.body() : Expr();
}

ir::Name summed_tile(const Fold& fold) {
  const Expr e = summed(fold);
  return e && e.op() == EK::Read ? e.name() : ir::Name();
}

std::vector<Expr> exponentials(Expr e, const Names& tiles) {
  std::vector<Expr> out;
  expr::for_each(e, [&](Expr x) {
    if (x.op() != EK::Exp2 && x.op() != EK::Exp) return;
    for (ir::Name n : expr::tensors_read(x)) {
      if (!tiles.contains(n.str())) continue;
      out.push_back(x);
      return;
    }
  });
  return out;
}

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds/quotient.h"

#include "expr/bounds/affine.h"

namespace nautilus::expr {

Expr exact_quotient(ExprPool& pool, Expr e, Expr n) {
  const auto p = Poly::of(e);
  if (!p) return {};
  if (n.op() == Op::IntConst) {
    const auto q = n.integer() > 0 ? divide(*p, n.integer()) : std::nullopt;
    return q && p->constant_term() % n.integer() == 0 ? to_expr(pool, *q) : Expr();
  }
  if (n.op() != Op::Var) return {};
  const auto parts = p->split(n);
  return parts && parts->second.constant() == 0 ? to_expr(pool, parts->first) : Expr();
}

}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/equations/join_scalars.h"

#include "algebra/sign.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// x * by, or x / by; null if the expression is neither with a scalar.
struct ScaledScalar {
  Expr x;
  Expr by;
  Op op = Op::Mul;
};

ScaledScalar scaled(Expr e, const std::unordered_set<Expr>& axes) {
  const bool is_product = e.op() == Op::Mul;
  if (!is_product && e.op() != Op::Div) return {};
  for (const size_t k : {size_t{1}, size_t{0}}) {
    if (k == 0 && !is_product) break;
    if (algebra::is_scalar(e[k], axes) && !algebra::is_scalar(e[1 - k], axes))
      return {e[1 - k], e[k], e.op()};
  }
  return {};
}

Expr joined(Expr e, const std::unordered_set<Expr>& axes, expr::ExprPool& pool) {
  if (e.dtype() != expr::DType::F32 && e.dtype() != expr::DType::F64) return e;
  const ScaledScalar outer = scaled(e, axes);
  const ScaledScalar inner = outer.x ? scaled(outer.x, axes) : ScaledScalar{};
  if (!inner.x) return e;
  const bool is_divided = inner.op == Op::Div;
  // x / a * b = x * (b / a), x / a / b = x / (a * b)
  const Expr by = is_divided && outer.op == Op::Mul ? pool.binary(Op::Div, outer.by, inner.by)
                  : is_divided                      ? pool.binary(Op::Mul, inner.by, outer.by)
                                                    : pool.binary(outer.op, inner.by, outer.by);
  return pool.binary(is_divided && outer.op == Op::Div ? Op::Div : Op::Mul, inner.x, by);
}

}  // namespace

std::optional<ir::Program> join_scalars(const ir::Program& program, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  return map_equations(program, [&](const Let& let) {
    const std::unordered_set<Expr> axes = all_axes(let, pool);
    return map_body(let, pool, [&](Expr e) { return joined(e, axes, pool); });
  });
}

}  // namespace nautilus::spec

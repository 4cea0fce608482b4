// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/algebra/join_sums.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "spec/equations.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

bool is_sum(Expr e) {
  return e.op() == Op::Reduce && e.reducer() == expr::Reducer::Sum && !e.init() &&
         e.dtype() == expr::DType::F32;
}

// A contraction of 16-bit elements over axes of the result that has all axes around it.
bool is_own_product(Expr sum, Expr outer, const std::vector<Expr>& results) {
  const std::vector<Expr> factors = algebra::factors(sum.body());
  if (!std::all_of(factors.begin(), factors.end(), algebra::is_half_element) ||
      !algebra::is_contraction(factors, results))
    return false;
  for (size_t k = 0; k < outer.axis_count(); ++k) {
    if (!expr::depends_on(sum, outer.axis(k))) return false;
    for (size_t n = 0; n < sum.axis_count(); ++n) {
      if (sum.axis(n) == outer.axis(k)) return false;
    }
  }
  return std::all_of(results.begin(), results.end(),
                     [&](Expr axis) { return expr::depends_on(sum, axis); });
}

Expr joined(Expr outer, const std::vector<Expr>& results, expr::ExprPool& pool) {
  if (!is_sum(outer) || outer.body().op() != Op::Select) return outer;
  const Expr chosen = outer.body();
  const bool is_zero = chosen[2].op() == Op::FloatConst && chosen[2].number() == 0;
  if (!is_zero || !is_sum(chosen[1]) || !is_own_product(chosen[1], outer, results)) return outer;
  const Expr inner = chosen[1];
  std::vector<Expr> axes;
  std::vector<Expr> extents;
  for (Expr sum : {outer, inner}) {
    for (size_t k = 0; k < sum.axis_count(); ++k) {
      axes.push_back(sum.axis(k));
      extents.push_back(sum.extent(k));
    }
  }
  const Expr body = pool.select(chosen[0], inner.body(), chosen[2]);
  return pool.reduce(expr::Reducer::Sum, body, axes, extents);
}

}  // namespace

std::optional<ir::Program> join_sums(const ir::Program& program, ir::PassContext& context) {
  return map_equations(program, [&](const Let& let) {
    const std::vector<Expr> results = result_axes(let, context.pool);
    Let out = let;
    out.body = expr::rebuild(context.pool, let.body,
                             [&](Expr e) { return joined(e, results, context.pool); });
    return out;
  });
}

}  // namespace nautilus::spec

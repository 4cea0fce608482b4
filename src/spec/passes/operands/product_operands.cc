// SPDX-License-Identifier: Apache-2.0
#include "spec/passes/operands/product_operands.h"

#include <algorithm>

#include "algebra/contraction.h"
#include "algebra/exact_halves.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;

bool has_axis_of(Expr reduction, Expr f) {
  for (size_t k = 0; k < reduction.axis_count(); ++k) {
    if (expr::depends_on(f, reduction.axis(k))) return true;
  }
  return false;
}

Expr product_of(const std::vector<Expr>& list, expr::ExprPool& pool) {
  Expr out;
  for (Expr f : list) out = out ? pool.binary(expr::Op::Mul, out, f) : f;
  return out;
}

}  // namespace

bool has_plain_places(Expr e) {
  bool is_plain = true;
  expr::for_each(e, [&](Expr x) {
    if (x.op() != expr::Op::Read) return;
    for (Expr index : x.args()) is_plain &= index.is_const() || index.op() == expr::Op::Var;
  });
  return is_plain;
}

std::optional<std::pair<Expr, Expr>> product_operands(const Let& let, expr::ExprPool& pool) {
  const Expr r = let.body;
  const std::vector<Expr> list = algebra::factors(r.body());
  const std::vector<Expr> axes = result_axes(let, pool);
  for (Expr f : list) {
    const bool is_summed = has_axis_of(r, f);
    if (!is_summed || algebra::exact_halves(f).is_stored_float) return std::nullopt;
  }
  for (size_t k = 0; k < list.size(); ++k) {
    for (size_t n = 0; n < k; ++n) {
      if (!algebra::are_operands(list[n], list[k], axes)) continue;
      std::vector<Expr> a = {list[n]};
      std::vector<Expr> b = {list[k]};
      for (size_t other = 0; other < list.size(); ++other) {
        if (other == n || other == k) continue;
        const Expr f = list[other];
        if (!algebra::has_own_axis({&f, 1}, a, axes)) {
          a.push_back(f);
        } else if (!algebra::has_own_axis({&f, 1}, b, axes)) {
          b.push_back(f);
        } else {
          return std::nullopt;
        }
      }
      std::pair out(product_of(a, pool), product_of(b, pool));
      // Rows of tiles stand before columns, which are the last axis that one operand has alone.
      const auto last = std::find_if(axes.rbegin(), axes.rend(), [&](Expr axis) {
        return expr::depends_on(out.first, axis) != expr::depends_on(out.second, axis);
      });
      if (last != axes.rend() && expr::depends_on(out.first, *last))
        std::swap(out.first, out.second);
      if (algebra::exact_halves(out.first).any() && algebra::exact_halves(out.second).any())
        return std::nullopt;
      return out;
    }
  }
  return std::nullopt;
}

}  // namespace nautilus::spec

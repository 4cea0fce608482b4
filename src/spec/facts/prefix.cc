// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/prefix.h"

#include <cmath>

#include "expr/bounds/affine.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;
using expr::Poly;

// The condition as `difference <= 0`.
std::optional<Poly> at_most_zero(Expr condition) {
  const Op op = condition.op();
  if (op != Op::Lt && op != Op::Le && op != Op::Gt && op != Op::Ge) return std::nullopt;
  if (condition[0].dtype() != expr::DType::I64) return std::nullopt;
  const bool is_less = op == Op::Lt || op == Op::Le;
  const auto low = Poly::of(condition[is_less ? 0 : 1]);
  const auto high = Poly::of(condition[is_less ? 1 : 0]);
  auto difference = low && high ? expr::add(*low, *high, -1) : std::nullopt;
  if (difference && (op == Op::Lt || op == Op::Gt) && !difference->add({}, 1)) return std::nullopt;
  return difference;
}

bool counts_for_nothing(Expr reduce, Expr masked) {
  if (is_arg(reduce.reducer())) return masked.is_const() || masked.op() == Op::Sub;
  if (!masked.is_const()) return false;
  const expr::Value none = expr::identity(reduce.reducer(), masked.dtype());
  return is_float(masked.dtype()) ? masked.number() == none.f : masked.integer() == none.i;
}

}  // namespace

std::optional<Prefix> prefix_of(const Let& let, expr::ExprPool& pool) {
  const Expr reduce = let.body;
  if (reduce.op() != Op::Reduce || reduce.axis_count() != 1) return std::nullopt;
  const Expr body = reduce.body();
  if (body.op() != Op::Select || !counts_for_nothing(reduce, body[2])) return std::nullopt;
  const auto difference = at_most_zero(body[0]);
  if (!difference) return std::nullopt;
  const Expr own = reduce.axis(0);
  for (size_t k = 0; k < let.axes.size(); ++k) {
    const Expr t = pool.index(let.axes[k].name);
    const auto by_own = difference->split(own);
    const auto by_t = by_own ? by_own->second.split(t) : std::nullopt;
    if (!by_t) continue;
    const auto factor = by_own->first.constant();
    const auto of_t = by_t->first.constant();
    const auto rest = by_t->second.constant();
    if (!factor || !of_t || !rest || *factor * *factor != 1 || *of_t != -*factor) continue;
    if (expr::depends_on(body[1], t) || (reduce.init() && expr::depends_on(reduce.init(), t)))
      return std::nullopt;
    // s - t + rest <= 0, or t - s + rest <= 0.
    const bool is_up = *factor == 1;
    return Prefix{k, is_up, is_up ? -*rest : *rest, body[1], body[2]};
  }
  return std::nullopt;
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
#include "algebra/total_order.h"

#include <algorithm>

#include "expr/conjuncts.h"
#include "expr/walk.h"

namespace nautilus::algebra {
namespace {

using expr::Expr;
using expr::Op;

bool is_integer(Expr e, int64_t value) { return e.op() == Op::IntConst && e.integer() == value; }

// The condition that a sum counts by; null if its terms are others.
Expr counted_condition(Expr term) {
  if (!expr::is_int(term.dtype())) return {};
  if (term.op() == Op::Select && is_integer(term[1], 1) && is_integer(term[2], 0)) return term[0];
  const bool is_flag = term.op() == Op::Cast && term[0].dtype() == expr::DType::Bool;
  return is_flag ? term[0] : Expr();
}

// What `comparison` compares at `index`, with the same at `counted` on its other side; null if it
// does not.
Expr compared(Expr comparison, Expr index, Expr counted, expr::ExprPool& pool) {
  for (const int own : {0, 1}) {
    const Expr x = comparison[static_cast<size_t>(own)];
    const Expr other = comparison[static_cast<size_t>(1 - own)];
    if (!expr::depends_on(x, index) || expr::depends_on(x, counted)) continue;
    if (expr::substitute(pool, x, {{index, counted}}) == other) return x;
  }
  return {};
}

// `x[k] > x[j] or x[k] == x[j] and k < j`; false for another condition.
bool read_order(Expr condition, Expr counted, TotalOrder& out, expr::ExprPool& pool) {
  if (condition.op() != Op::Or) return false;
  for (const int first : {0, 1}) {
    const Expr beyond = condition[static_cast<size_t>(first)];
    const std::vector<Expr> equal = expr::conjuncts(condition[static_cast<size_t>(1 - first)]);
    const bool is_strict = beyond.op() == Op::Lt || beyond.op() == Op::Gt;
    if (!is_strict || equal.size() != 2) continue;
    const Expr element = compared(beyond, out.index, counted, pool);
    if (!element) continue;
    const auto is_first = [&](Expr e) {
      return (e.op() == Op::Lt && e[0] == counted && e[1] == out.index) ||
             (e.op() == Op::Gt && e[0] == out.index && e[1] == counted);
    };
    const auto is_equal = [&](Expr e) {
      return e.op() == Op::Eq && compared(e, out.index, counted, pool) == element;
    };
    const size_t last = is_first(equal[1]) ? 1 : 0;
    if (!is_first(equal[last]) || !is_equal(equal[1 - last])) continue;
    out.element = element;
    out.is_largest_first = (beyond.op() == Op::Gt) == (beyond[1] == element);
    return true;
  }
  return false;
}

}  // namespace

std::optional<TotalOrder> read_total_order(const CountedTerms& sum, expr::ExprPool& pool) {
  const Expr condition = counted_condition(sum.term);
  if (!condition || expr::has_reduce(condition)) return std::nullopt;
  const Expr counted = sum.counted;
  for (const ir::Axis& axis : sum.axes) {
    if (axis.extent != sum.extent) continue;
    const Expr index = pool.index(axis.name);
    TotalOrder out{axis, index, {}, false, {}, {}};
    bool is_order = true;
    for (Expr c : expr::conjuncts(condition)) {
      const bool is_about_own = expr::depends_on(c, index);
      if (is_about_own && expr::depends_on(c, counted)) {
        is_order &= !out.element && read_order(c, counted, out, pool);
        continue;
      }
      const Expr own = is_about_own ? c : expr::substitute(pool, c, {{counted, index}});
      if (!is_about_own) out.counts.push_back(own);
      if (std::find(out.has_place.begin(), out.has_place.end(), own) == out.has_place.end())
        out.has_place.push_back(own);
    }
    // With a condition on j alone, elements without a place would still come before others.
    const bool all_count = std::ranges::all_of(out.has_place, [&](Expr c) {
      return std::find(out.counts.begin(), out.counts.end(), c) != out.counts.end();
    });
    if (!is_order || !out.element || !all_count) continue;
    if (expr::is_float(out.element.dtype()))
      out.has_place.push_back(pool.binary(Op::Eq, out.element, out.element));
    return out;
  }
  return std::nullopt;
}

Expr counted_places(Expr e) {
  const bool is_wider = e.op() == Op::Cast && e.dtype() == expr::DType::I64;
  const Expr read = is_wider ? e[0] : e;
  const bool is_count = read.dtype() == expr::DType::I32 || read.dtype() == expr::DType::I64;
  return read.op() == Op::Read && is_count ? read : Expr();
}

bool follows(Expr condition, const std::vector<Expr>& known, expr::ExprPool& pool) {
  const auto holds = [&](Expr e) {
    if (std::find(known.begin(), known.end(), e) != known.end()) return true;
    return e.op() == Op::Eq && e[0] == e[1] && (e[0].is_const() || !expr::is_float(e[0].dtype()));
  };
  if (holds(condition)) return true;
  return holds(expr::rebuild(
      pool, condition, [&](Expr e) { return e.op() == Op::Select && holds(e[0]) ? e[1] : e; }));
}

}  // namespace nautilus::algebra

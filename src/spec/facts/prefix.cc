// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/prefix.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "expr/bounds/at_most_zero.h"
#include "expr/combination.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::spec {
namespace {

using expr::Expr;
using expr::Op;

// NaN, which no position is of: `inf - inf`.
bool is_nan(Expr e) {
  const auto is_number = [](Expr x) { return x.op() == Op::FloatConst; };
  return e.op() == Op::Sub && is_number(e[0]) && is_number(e[1]) &&
         std::isnan(e[0].number() - e[1].number());
}

bool counts_for_nothing(Expr reduce, Expr masked) {
  if (is_arg(reduce.reducer())) return masked.is_const() || is_nan(masked);
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
  const auto difference = expr::at_most_zero(body[0]);
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

std::optional<Let> as_prefix(const Let& let, size_t along, Direction direction,
                             expr::ExprPool& pool) {
  const auto step = expr::combination_of(let.body, pool);
  if (!step || let.dtype != expr::compute_dtype(let.dtype)) return std::nullopt;
  const bool is_up = direction == Direction::Up;
  const Expr t = pool.index(let.axes[along].name);
  const Expr extent = let.axes[along].extent;
  std::vector<Expr> before;
  for (const ir::Axis& a : let.axes) before.push_back(pool.index(a.name));
  before[along] = pool.binary(Op::Add, t, pool.integer(is_up ? -1 : 1));
  const Expr last = pool.read(let.name, let.dtype, before);
  const Expr is_step =
      is_up ? pool.binary(Op::Ge, t, pool.integer(1)) : pool.binary(Op::Lt, before[along], extent);
  for (const size_t k : {size_t{0}, size_t{1}}) {
    const Expr state = step->operands[k];
    const Expr term = step->operands[1 - k];
    if (state.op() != Op::Select || state[1] != last) continue;
    const auto condition = expr::at_most_zero(state[0]);
    if (!condition || condition != expr::at_most_zero(is_step)) continue;
    const auto read = expr::tensors_read(term);
    const bool is_free = std::find(read.begin(), read.end(), let.name) == read.end();
    if (!is_free || expr::depends_on(state[2], t)) continue;
    // A step from NaN to NaN is NaN; a reduction ignores it.
    const bool is_extreme =
        step->reducer == expr::Reducer::Max || step->reducer == expr::Reducer::Min;
    if (is_extreme && !state[2].is_const()) continue;
    std::string name(t.name().str());
    do name += "_";
    while (expr::depends_on(let.body, pool.index(name)));
    const Expr s = pool.index(name);
    const expr::Value none = expr::identity(step->reducer, let.dtype);
    const Expr masked = is_float(let.dtype)              ? pool.floating(none.f, let.dtype)
                        : let.dtype == expr::DType::Bool ? pool.boolean(none.i != 0)
                                                         : pool.integer(none.i, let.dtype);
    const Expr body = pool.select(pool.binary(is_up ? Op::Le : Op::Ge, s, t),
                                  expr::substitute(pool, term, {{t, s}}), masked);
    Let out = let;
    out.body = pool.reduce(step->reducer, body, std::array{s}, std::array{extent}, state[2]);
    return out;
  }
  return std::nullopt;
}

}  // namespace nautilus::spec

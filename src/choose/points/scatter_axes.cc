// SPDX-License-Identifier: Apache-2.0
#include "choose/points/scatter_axes.h"

#include <algorithm>

#include "choose/points/value_costs.h"
#include "expr/walk.h"
#include "ir/walk.h"
#include "scalar/ops.h"

namespace nautilus::choose {
namespace {

using expr::Expr;

// What a thread reads, and the element that its term goes to.
struct Accesses {
  std::vector<Expr> reads;
  Expr element;
};

Accesses accesses_of(const ir::Block& body, expr::ExprPool& pool) {
  Accesses out;
  ir::for_each_op(body, [&](const ir::Op& op) {
    const auto* s = op.get<scalar::Scatter>();
    if (s) out.element = pool.read(s->target, s->value.dtype(), s->indices);
  });
  for (const ir::Op& op : body) {
    ir::for_each_expr(op, [&](Expr root) {
      expr::for_each(root, [&](Expr e) {
        if (e.op() == expr::Op::Read) out.reads.push_back(e);
      });
    });
  }
  return out;
}

double lines(const Accesses& all, Expr axis, const target::NestCosts& costs) {
  const auto touched = [&](Expr e) {
    const Stride s = stride(e, axis);
    return s == Stride::Far ? costs.strided_lines : s == Stride::None ? costs.same_lines : 1.0;
  };
  double sum = all.element ? costs.scatter_reads * touched(all.element) : 0;
  for (const Expr e : all.reads) sum += touched(e);
  return sum;
}

// Of equal ones the last.
ir::Axes best_last(ir::Axes axes, const Accesses& all, const target::NestCosts& costs,
                   expr::ExprPool& pool) {
  if (axes.size() < 2) return axes;
  size_t best = axes.size() - 1;
  for (size_t k = axes.size() - 1; k-- > 0;) {
    if (lines(all, pool.index(axes[k].name), costs) <
        lines(all, pool.index(axes[best].name), costs))
      best = k;
  }
  const auto at = axes.begin() + static_cast<std::ptrdiff_t>(best);
  std::rotate(at, at + 1, axes.end());
  return axes;
}

}  // namespace

ir::Axes scatter_axes(const lower::MapNest& terms, const target::NestCosts& costs,
                      expr::ExprPool& pool) {
  return best_last(terms.axes, accesses_of(terms.body, pool), costs, pool);
}

}  // namespace nautilus::choose

// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/reduced_by.h"

#include "expr/walk.h"
#include "spec/equations.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Op;

bool is_reduced_by(Expr read, expr::Reducer reducer, Expr e, const Equations& equations,
                   const std::unordered_map<Expr, Expr>& extents, expr::ExprPool& pool) {
  if (read.op() != Op::Read) return false;
  const auto it = equations.find(read.name());
  if (it == equations.end()) return false;
  // An axis of the place must not come to mean the reduced axis of that name.
  const Expr written = it->second.body;
  for (size_t k = 0; written.op() == Op::Reduce && k < written.axis_count(); ++k) {
    for (Expr index : read.args()) {
      if (expr::depends_on(index, written.axis(k))) return false;
    }
  }
  const Expr r = body_at(it->second, read, pool);
  if (r.op() != Op::Reduce || r.init() || r.reducer() != reducer) return false;
  std::unordered_map<Expr, Expr> axes;
  for (size_t k = 0; k < r.axis_count(); ++k) axes.emplace(r.axis(k), Expr());
  if (!is_instance(r.body(), e, axes)) return false;
  for (size_t k = 0; k < r.axis_count(); ++k) {
    const Expr place = axes.at(r.axis(k));
    const auto extent = place ? extents.find(place) : extents.end();
    if (extent == extents.end() || extent->second != r.extent(k)) return false;
  }
  return true;
}

}  // namespace nautilus::spec

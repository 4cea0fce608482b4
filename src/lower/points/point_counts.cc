// SPDX-License-Identifier: Apache-2.0
#include "lower/points/point_counts.h"

namespace nautilus::lower {

using expr::Expr;
using EK = expr::Op;

Expr quotient_up(Expr n, int64_t by, expr::ExprPool& pool) {
  if (n.op() == EK::IntConst) return pool.integer((n.integer() + by - 1) / by);
  return pool.binary(EK::FloorDiv, pool.binary(EK::Add, n, pool.integer(by - 1)), pool.integer(by));
}

Expr count_of(const ir::Axes& axes, expr::ExprPool& pool) {
  Expr count;
  for (const ir::Axis& a : axes) {
    const Expr n = a.extent.op() == EK::IntConst || a.extent.op() == EK::Var
                       ? a.extent
                       : pool.binary(EK::Max, a.extent, pool.integer(0));
    count = count ? pool.binary(EK::Mul, count, n) : n;
  }
  return count;
}

}  // namespace nautilus::lower

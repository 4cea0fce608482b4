// SPDX-License-Identifier: Apache-2.0
#include "expr/combination.h"

#include "expr/scalar_ops.h"

namespace nautilus::expr {

std::optional<Combination> combination_of(Expr value, ExprPool& pool) {
  if (value.args().size() != 2) return std::nullopt;
  if (value.op() == Op::Sub)
    return Combination{Reducer::Sum, {value[0], pool.unary(Op::Neg, value[1])}};
  for (const auto r :
       {Reducer::Sum, Reducer::Prod, Reducer::Max, Reducer::Min, Reducer::Any, Reducer::All}) {
    if (combiner(r) == value.op()) return Combination{r, {value[0], value[1]}};
  }
  return std::nullopt;
}

}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
// Equations that count how many elements of an axis come before each one, in an order in which no
// two are equal:
//
//   let P[i < M, j < N] : i32 =
//       sum[k < N] where(X[i, k] > X[i, j] or X[i, k] == X[i, j] and k < j, i32(1), i32(0))
//
// Larger elements come first, or smaller ones with `<`; of equal ones the first. Further conditions
// on k or on j say which elements have a place; NaN has none.
#pragma once

#include <optional>

#include "expr/expr.h"
#include "spec/ops.h"

namespace nautilus::spec {

struct TotalOrder {
  ir::Axis axis;     // j
  ir::Expr index;    // its variable
  ir::Expr element;  // X[i, j]
  bool is_largest_first = false;
  std::vector<ir::Expr> counts;     // conditions on j: others come after it
  std::vector<ir::Expr> has_place;  // conditions on j: different elements have different places
};

// Nothing for other equations.
std::optional<TotalOrder> read_total_order(const Let& let, expr::ExprPool& pool);

}  // namespace nautilus::spec

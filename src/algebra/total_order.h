// SPDX-License-Identifier: Apache-2.0
// Sums that count how many elements of an axis come before each one, in an order in which no two
// are equal:
//
//   let P[i < M, j < N] : i32 =
//       sum[k < N] where(X[i, k] > X[i, j] or X[i, k] == X[i, j] and k < j, i32(1), i32(0))
//
// Larger elements come first, or smaller ones with `<`; of equal ones the first. Further conditions
// on k or on j say which elements have a place; NaN has none.
#pragma once

#include <optional>
#include <vector>

#include "ir/op.h"

namespace nautilus::algebra {

struct TotalOrder {
  ir::Axis axis;     // j
  ir::Expr index;    // its variable
  ir::Expr element;  // X[i, j]
  bool is_largest_first = false;
  std::vector<ir::Expr> counts;     // conditions on j: others come after it
  std::vector<ir::Expr> has_place;  // conditions on j: different elements have different places
};

// A sum over one axis, `counted`, for each point of `axes`.
struct CountedTerms {
  const ir::Axes& axes;
  ir::Expr term;
  ir::Expr counted;
  ir::Expr extent;
};

// Nothing for other sums.
std::optional<TotalOrder> read_total_order(const CountedTerms& sum, expr::ExprPool& pool);

// The element of a count that `e` is, as it stands or as i64; null for other expressions.
ir::Expr counted_places(ir::Expr e);

// Whether the condition on an element of the order holds where all of `known` do.
bool follows(ir::Expr condition, const std::vector<ir::Expr>& known, expr::ExprPool& pool);

}  // namespace nautilus::algebra

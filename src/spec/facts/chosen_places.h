// SPDX-License-Identifier: Apache-2.0
// Reductions that choose the elements of an axis by their place in an order
// (algebra/total_order.h):
//
//   let V[i < M, r < 8] : f32 =
//       max[j < N] where(i64(P[i, j]) == r and X[i, j] == X[i, j], X[i, j], -inf)
//
// Elements with other places, and those without one, do not change the result.
#pragma once

#include <vector>

#include "algebra/total_order.h"
#include "expr/walk.h"
#include "spec/ops.h"

namespace nautilus::spec {

using algebra::TotalOrder;

// The order that an equation counts by; nothing for other equations.
std::optional<TotalOrder> counted_order(const Let& let, expr::ExprPool& pool);

struct PlaceReader {
  const Let* let = nullptr;
  ir::Expr read;      // P[i, j], where j is the axis of the reduction
  int64_t limit = 0;  // the places that it chooses are less
};

// All readers of `count`, which has the order; none if one of them is another reduction, asks for
// places without a limit that is known when compiling, or if the count is an output.
std::vector<PlaceReader> place_readers(const ir::Program& program, const Let& count,
                                       const TotalOrder& order, expr::ExprPool& pool);

// The axes of the tensor at the indices of the read.
expr::Substitution indices_of(const Let& tensor, ir::Expr read, expr::ExprPool& pool);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// A count of those that come before each element of a row, and reductions that choose elements by
// it: what lanes that put the row in order find at once.
//
//   for i < M, j < N map
//     init P[i, j] = 0
//     for k < N reduce
//       update P[i, j] sum
//         where(X[i, k] > X[i, j] or X[i, k] == X[i, j] and k < j, 1, 0)
//   for i < M, r < 8 map
//     init V[i, r] = -inf
//     for j < N reduce
//       update V[i, r] max
//         where(P[i, j] == r and X[i, j] == X[i, j], X[i, j], -inf)
//
// becomes
//   layout
//     lanes 32
//   points i < M
//     order j < N each 8 largest X[i, j] when X[i, j] == X[i, j] place p to 8
//       if p < 8
//         write V[i, p] = where(p < N and X[i, j] == X[i, j], max(-inf, X[i, j]), -inf)
//
// The count has the order by its terms (algebra/total_order.h). A choice has its condition, its
// value and its initial element as they are written; the count in it is the place. Test:
// test/lower/sort.naut
#pragma once

#include <optional>
#include <span>

#include "algebra/total_order.h"
#include "lower/points/points_kernel.h"

namespace nautilus::lower {

// A reduction to the element at one place of a row, or at each.
struct PlaceChoice {
  ir::Name target;
  ir::Exprs indices;
  expr::Reducer reducer = expr::Reducer::Max;
  expr::Expr first;      // what the reduction begins with
  expr::Expr condition;  // that the element is chosen; null: always
  expr::Expr value;
  expr::Expr place;   // the one that it asks for, not less than 0
  expr::Expr places;  // instead: each less than these
};

struct SortNests {
  size_t count = 0;  // nests that it is made of
  ir::Name counts;   // the result of the first one
  ir::Axes rows;
  algebra::TotalOrder order;
  expr::Expr place;  // stands for the place of an element in choices
  std::vector<PlaceChoice> choices;
};

// The first of the nests counts, those behind it choose by its result. Nothing for other nests.
std::optional<SortNests> sort_nests(std::span<const MapNest> nests, FreshNames names,
                                    const target::Target& target, expr::ExprPool& pool);

}  // namespace nautilus::lower

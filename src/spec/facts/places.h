// SPDX-License-Identifier: Apache-2.0
// How an expression depends on the axes around it: the integers that it is a function of.
//
//   cos(angle[i, d % 64])      i and d % 64: M * 64 values, however long d is
//   pow(g[h], f32(i - j))      h and i - j: H * (2 * M - 1) values
//   f32(d / 64) + f32(d % 64)  d: both together are all of it
#pragma once

#include <vector>

#include "expr/bounds/bounds.h"
#include "ir/usual_sizes.h"

namespace nautilus::spec {

struct Place {
  ir::Expr index;   // an axis, or an expression of axes
  ir::Expr least;   // it is from this one on
  ir::Expr extent;  // as many values
};

// In the order of the axes, by the last one of each. `facts` knows the axes.
std::vector<Place> places_of(ir::Expr e, const ir::Axes& axes, const expr::Facts& facts,
                             const ir::UsualSizes& sizes, expr::ExprPool& pool);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// A sum of products as a matrix product.
//
//   sum over d of  f32(A[i, d]) * f32(B[j, d]) * g[d] * r[i]
// has a group of factors with (i, d), one with (j, d), factors of d alone, which join the first
// group, and factors without d, which leave the sum. With both groups it is the product of two
// matrices, whatever the factors are.
#pragma once

#include <optional>

#include "expr/expr.h"

namespace nautilus::lower {

struct DotFactors {
  expr::Expr rows;   // over row and depth, in the dtype in which it is stored
  expr::Expr cols;   // over column and depth
  expr::Expr outer;  // without depth; null if there is none
  // A guard of the depth alone stands on both sides. One is enough where the other side is finite.
  bool is_guarded_twice = false;
};

// Empty if the value is anything else. Guards whose other branch is 0 go to the factor that has
// their axes.
std::optional<DotFactors> split_dot(expr::ExprPool& pool, expr::Expr value, expr::Expr row,
                                    expr::Expr col, expr::Expr depth);

}  // namespace nautilus::lower

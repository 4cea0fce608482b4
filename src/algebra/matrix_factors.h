// SPDX-License-Identifier: Apache-2.0
// Which factors of a sum's terms make it a product of matrices, whether or not matrix instructions
// can compute it: what messages about scalar code and reasons of the scheduler are about.
#pragma once

#include <span>

#include "expr/expr.h"

namespace nautilus::algebra {

struct MatrixFactors {
  expr::Expr a, b;  // null: it is not a product of matrices
};

// Of the terms `value` of results along `axes`, summed along `summed`. The terms may stand under a
// condition, and rows may share an operand in blocks, as in `K[h / 4, j]`.
MatrixFactors matrix_factors(expr::Expr value, std::span<const expr::Expr> axes,
                             std::span<const expr::Expr> summed, expr::ExprPool& pool);

}  // namespace nautilus::algebra

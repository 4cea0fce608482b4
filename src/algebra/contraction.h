// SPDX-License-Identifier: Apache-2.0
// Sums of products, and which of them are contractions. One analysis for the rewrites of equations,
// for fusion, and for the search for products that matrix instructions compute.
//
//   C[i, j] = sum[d] f32(Q[i, d]) * f32(K[j, d]) * w[d]
//
// has three factors. It is a contraction: Q has the axis i of the result, which K lacks, and K has
// j, which Q lacks. Q and K are its operands: elements of tensors that are only converted.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "expr/expr.h"

namespace nautilus::algebra {

// The factors of a product of products, from left to right. A product that would be too large as a
// tree is one factor.
std::vector<expr::Expr> factors(expr::Expr e);

// The terms of a sum of sums, from left to right; a sum that would be too large as a tree is one
// term.
std::vector<expr::Expr> terms(expr::Expr e);

// The tensor element of a factor that is an element, perhaps converted; null if the factor is
// computed.
expr::Expr element_of(expr::Expr factor);
// An element of a 16-bit float, which a matrix instruction reads directly.
bool is_half_element(expr::Expr factor);

// How many neighbours along the axis have the same value of the factor, where the axis occurs only
// in quotients by constants: 128 in `scale[i, k / 128]`, and 0 if it does not occur. Nothing if the
// value may differ between neighbours.
std::optional<int64_t> equal_neighbours(expr::ExprPool& pool, expr::Expr factor, expr::Expr axis);

// Whether an expression of `list` has an axis that none of `others` has.
bool has_own_axis(std::span<const expr::Expr> list, std::span<const expr::Expr> others,
                  std::span<const expr::Expr> axes);
// Whether each has an axis of the result that the other lacks.
bool are_operands(expr::Expr a, expr::Expr b, std::span<const expr::Expr> axes);
// Whether two of the factors are operands: their sum is a product of matrices.
bool is_contraction(std::span<const expr::Expr> factors, std::span<const expr::Expr> axes);

}  // namespace nautilus::algebra

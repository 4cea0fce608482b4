// SPDX-License-Identifier: Apache-2.0
// Joins short axes of a contraction: the depth of a product in which no axis is as long as a matrix
// instruction is deep, such as a convolution of three channels.
//
//   sum[c < 3, r < 7, s < 7] w[f, c, r, s] * x[n, c, i + r, j + s]
// has the depth q = (c, s), 21 long, and steps r; its operands are
//   w[f, q / 7, r, q % 7]     and     x[n, q / 7, i + r, j + q % 7]
//
// which are stored as tensors of their own (split_operands).
#pragma once

#include <optional>
#include <vector>

#include "expr/walk.h"
#include "ir/environment.h"
#include "ir/op.h"
#include "target/target.h"

namespace nautilus::spec {

struct MergedDepth {
  ir::Axis axis;                 // the depth
  std::vector<ir::Expr> merged;  // axes that it stands for
  expr::Substitution at;         // their places at a place of the depth
  ir::Axes steps;                // axes of the sum that stay
};

// The axes of the reduction that are best joined, among all sets of the first axis and some of the
// last ones. Empty if an axis is long enough at the hints or has no hint, or if steps along the
// first axis alone are less work than limbs that repeat elements. `reuse`: the number of results
// that use an element of an operand. `limbs`: of a number.
ir::Names usual_depth(ir::Expr reduction, const ir::Environment& hints, int64_t reuse, size_t limbs,
                      const target::Target& target);

// Joins axes of the reduction, the last one fastest, into one of that name.
MergedDepth merged_depth(ir::Expr reduction, const ir::Names& axes, ir::Name name,
                         expr::ExprPool& pool);

}  // namespace nautilus::spec

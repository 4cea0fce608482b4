// SPDX-License-Identifier: Apache-2.0
// Short axes of a contraction as one: the depth of a product that has no axis as long as a matrix
// instruction, such as a convolution of three channels.
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

// Axes of the reduction that are best taken as one, of all sets of the first and some of the last
// ones. None if an axis is long enough at the hints, or has no extent there, or if steps along the
// first one alone are less work than limbs that repeat elements. `reuse`: of how many results an
// element of an operand is a term.
ir::Names usual_depth(ir::Expr reduction, const ir::Environment& hints, int64_t reuse,
                      const target::Target& target);

// Axes of the reduction, the last one fastest, as one of that name.
MergedDepth merged_depth(ir::Expr reduction, const ir::Names& axes, ir::Name name,
                         expr::ExprPool& pool);

}  // namespace nautilus::spec

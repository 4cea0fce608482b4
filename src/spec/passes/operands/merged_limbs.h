// SPDX-License-Identifier: Apache-2.0
// The limbs of an operand whose product has several axes of its sum as one depth.
#pragma once

#include <optional>

#include "spec/passes/operands/limb_dimensions.h"
#include "spec/passes/operands/merged_depth.h"

namespace nautilus::spec {

struct MergedLimbs {
  LimbDimensions limbs;  // the depth is the last one
  size_t kept;           // how many of them are dimensions of the tensor
  ir::Expr outside;      // a condition that stays with the product; may be null
};

// Of an element of a tensor of that type, with or without a guard that gives 0. Indices with axes
// that are one are written out along the other axes that they have, as far as the equation has
// them; the other indices stay. `axes`: of the equation and its sum. Nothing if a part of the guard
// has axes of both kinds.
std::optional<MergedLimbs> merged_limbs(ir::Expr operand, const MergedDepth& merged,
                                        const ir::Axes& axes, const ir::TensorType& type,
                                        expr::ExprPool& pool);

}  // namespace nautilus::spec

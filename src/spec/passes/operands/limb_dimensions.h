// SPDX-License-Identifier: Apache-2.0
// The dimensions that limbs of a tensor have, by the way in which a product reads it.
#pragma once

#include <utility>
#include <vector>

#include "ir/decl.h"
#include "target/target.h"

namespace nautilus::spec {

// A dimension of the limbs of a tensor, and where a product reads it.
struct LimbDimension {
  ir::Axis axis;
  expr::Expr at;
};

struct LimbDimensions {
  ir::Axes axes() const;

  std::vector<LimbDimension> parts;
  expr::Expr value;  // the element that belongs to a place of them
};

// Those of the tensor, but the depth of the product (its name is null if it has none) has one of
// its own where it is `group * C + depth`, so that a box ends with its group.
LimbDimensions limb_dimensions(expr::Expr read, const ir::TensorType& type, const ir::Axis& depth,
                               const target::Target& target, expr::ExprPool& pool);

// The first dimension and one from the k-th on whose axis both operands have, as one: a box has one
// place of both.
void join_batch(size_t k, const std::pair<expr::Expr, expr::Expr>& operands, LimbDimensions& out,
                expr::ExprPool& pool);

}  // namespace nautilus::spec

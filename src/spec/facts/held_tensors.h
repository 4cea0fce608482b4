// SPDX-License-Identifier: Apache-2.0
// Named f32 tensors that are operands like their definitions, as the numerics contract says: a name
// changes nothing about an operand.
//
//   let U[j < N, e < E] : f32 = max(f32(V[j, e]), 0.0)      V : bf16
//   let W[k < K, j < N] : f32 = f32(V[k, j]) * s[j]
//
// 16 bits hold the numbers of `U` exactly (algebra/exact_halves.h), because they are made of 16-bit
// elements by signs, extremes and selections. `W` is a product with such a factor.
#pragma once

#include <unordered_map>

#include "spec/ops.h"

namespace nautilus::spec {

class HeldTensors {
 public:
  HeldTensors(const ir::Program& program, expr::ExprPool& pool);

  // Reads of the first kind as numbers that are rounded to the 16 bits, which changes none of them;
  // reads of the second kind as their definitions.
  expr::Expr marked(expr::Expr e) const;

 private:
  expr::ExprPool& pool_;
  std::unordered_map<ir::Name, expr::DType> held_;
  std::unordered_map<ir::Name, Let> products_;
};

}  // namespace nautilus::spec

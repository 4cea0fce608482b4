// SPDX-License-Identifier: Apache-2.0
// Named f32 tensors with numbers that 16 bits hold exactly (algebra/exact_halves.h), because they
// are made of 16-bit elements by signs, extremes and selections:
//
//   let U[j < N, e < E] : f32 = max(f32(V[j, e]), 0.0)      V : bf16
//
// A name changes nothing about an operand: the numerics contract treats `U` like its definition.
#pragma once

#include <unordered_map>

#include "spec/ops.h"

namespace nautilus::spec {

class HeldTensors {
 public:
  HeldTensors(const ir::Program& program, expr::ExprPool& pool);

  // Reads of such tensors as numbers that are rounded to the 16 bits, which changes none of them.
  expr::Expr marked(expr::Expr e) const;

 private:
  expr::ExprPool& pool_;
  std::unordered_map<ir::Name, expr::DType> held_;
};

}  // namespace nautilus::spec

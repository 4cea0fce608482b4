// SPDX-License-Identifier: Apache-2.0
// Tensors of the 16-bit numbers (limbs) whose sum an f32 value is: their names, the equations that
// make them, and their elements in a product.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "spec/equations.h"

namespace nautilus::spec {

// An operand as products of it are written: one 16-bit number, or three.
using Limbs = std::vector<expr::Expr>;

class LimbTensors {
 public:
  // `types`: of all tensors, those of limbs are put to them.
  LimbTensors(const ir::Program& program, std::map<std::string, ir::TensorType>& types,
              expr::ExprPool& pool)
      : types_(types), names_(program, pool), pool_(pool) {}

  // Of the tensors that hold the limbs of a value.
  ir::Names names(std::string_view base, expr::Expr value);
  // The limbs of `value` over the axes.
  void make(const ir::Names& names, expr::Expr value, const ir::Axes& axes, std::vector<Let>& made);
  Limbs elements(const ir::Names& limbs, const std::vector<expr::Expr>& at);

 private:
  std::map<std::string, ir::TensorType>& types_;
  TensorNames names_;
  expr::ExprPool& pool_;
};

}  // namespace nautilus::spec

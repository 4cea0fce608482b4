// SPDX-License-Identifier: Apache-2.0
// Tensors of the 16-bit numbers (limbs) whose sum an f32 value is: their names, the equations that
// make them, and their elements in a product. A licence of the numerics contract to round operands
// makes them fewer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/decl.h"
#include "spec/equations.h"

namespace nautilus::spec {

// An operand as products of it are written: one 16-bit number, two or three, large ones first.
using Limbs = std::vector<expr::Expr>;

// Of a number that 16 bits do not hold: three have all bits of f32, two have 16, more than tf32
// keeps, and one is what `numerics bf16` keeps.
size_t limb_count(ir::Rounding contract);

class LimbTensors {
 public:
  // `types`: of all tensors, those of limbs are put to them.
  LimbTensors(const ir::Program& program, std::map<std::string, ir::TensorType>& types,
              expr::ExprPool& pool)
      : types_(types),
        most_(limb_count(ir::numerics_of(program).rounding)),
        names_(program, pool),
        pool_(pool) {}

  // Of the tensors that hold the limbs of a value.
  ir::Names names(std::string_view base, expr::Expr value);
  // The limbs of `value` over the axes.
  void make(const ir::Names& names, expr::Expr value, const ir::Axes& axes, std::vector<Let>& made);
  Limbs elements(const ir::Names& limbs, const std::vector<expr::Expr>& at);

 private:
  std::map<std::string, ir::TensorType>& types_;
  size_t most_;
  TensorNames names_;
  expr::ExprPool& pool_;
};

}  // namespace nautilus::spec

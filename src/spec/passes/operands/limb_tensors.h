// SPDX-License-Identifier: Apache-2.0
// Tensors of the narrower numbers (limbs) whose sum an f32 value is: their names, the equations
// that make them, and their elements in a product. A licence of the numerics contract to round
// operands makes them fewer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/decl.h"
#include "ir/target_of.h"
#include "spec/equations.h"
#include "target/target.h"

namespace nautilus::spec {

// An operand as products of it are written: one number, two or three, large ones first.
using Limbs = std::vector<expr::Expr>;

// The limbs of a number that 16 bits do not hold: three of bf16 have all bits of f32. A licence for
// tf32 is one number of that dtype, or where the target has no products of such numbers two of
// bf16, which have more bits; one of bf16 is what `numerics bf16` keeps.
struct LimbKind {
  ir::DType dtype = ir::DType::BF16;
  size_t count = 3;
  // Whether the matrix unit needs the depth of both operands along memory.
  bool is_depth_last = false;
};
LimbKind limb_kind(ir::Rounding contract, const target::Matrix& matrix);

class LimbTensors {
 public:
  // `types`: of all tensors, those of limbs are put to them.
  LimbTensors(const ir::Program& program, std::map<std::string, ir::TensorType>& types,
              expr::ExprPool& pool)
      : types_(types),
        kind_(limb_kind(ir::numerics_of(program).rounding, ir::target_of(program).matrix)),
        names_(program, pool),
        pool_(pool) {}

  // Of the tensors that hold the limbs of a value.
  ir::Names names(std::string_view base, expr::Expr value);
  // The limbs of `value` over the axes.
  void make(const ir::Names& names, expr::Expr value, const ir::Axes& axes, std::vector<Let>& made);
  Limbs elements(const ir::Names& limbs, const std::vector<expr::Expr>& at);

 private:
  std::map<std::string, ir::TensorType>& types_;
  LimbKind kind_;
  TensorNames names_;
  expr::ExprPool& pool_;
};

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Which 16-bit floats hold every value of an expression exactly, however it is computed:
//
//   f32(V)                     a bf16 element: bf16
//   max(-f32(V), 0.0)          signs, absolute values, extremes and selections keep their operands'
//   where(c, f32(V), f32(Z))   numbers: what both operands have
//   f32(i32(q))                an i8 element: bf16 and f16, which have all integers up to 256
#pragma once

#include "expr/expr.h"

namespace nautilus::algebra {

struct ExactHalves {
  bool in_bf16 = false;
  bool in_f16 = false;
  // Some number comes from an element of a 16-bit or 8-bit float. The numerics contract allows
  // rounding the other operand of a product to the stored dtype of such an operand.
  bool is_stored_float = false;
  bool has_element = false;  // some number comes from a tensor of any type; else all are constants

  bool any() const { return in_bf16 || in_f16; }
  // The preferred dtype if it is among them, else the other. At least one must hold the values.
  expr::DType choose(expr::DType preferred) const {
    const bool is_f16 = in_f16 && (preferred == expr::DType::F16 || !in_bf16);
    return is_f16 ? expr::DType::F16 : expr::DType::BF16;
  }
};

ExactHalves exact_halves(expr::Expr e);

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
// Which 16-bit floats hold every value of an expression exactly, whatever makes it:
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
  // Some number comes from an element of a 16-bit or 8-bit float: where the numerics contract lets
  // a product's other operand be rounded to what this one is stored in, that is such a product.
  bool is_stored_float = false;
  bool has_element = false;  // of a tensor, of whatever type; else it is made of constants

  bool any() const { return in_bf16 || in_f16; }
  // The preferred one if it is among them, else the other; only if there is any.
  expr::DType choose(expr::DType preferred) const {
    const bool is_f16 = in_f16 && (preferred == expr::DType::F16 || !in_bf16);
    return is_f16 ? expr::DType::F16 : expr::DType::BF16;
  }
};

ExactHalves exact_halves(expr::Expr e);

}  // namespace nautilus::algebra

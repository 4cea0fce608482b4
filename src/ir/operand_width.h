// SPDX-License-Identifier: Apache-2.0
// What the matrix unit of a target does with operands of a dtype.
#pragma once

#include "expr/dtype.h"
#include "target/machine.h"

namespace nautilus::ir {

// Null if the unit does not take them.
inline const target::OperandWidth* operand_width(const target::Matrix& matrix, expr::DType dtype) {
  if (!expr::is_operand(dtype)) return nullptr;
  return matrix.width(
      expr::is_int(dtype) ? target::OperandKind::Integer : target::OperandKind::Float,
      expr::bytes(dtype));
}

}  // namespace nautilus::ir

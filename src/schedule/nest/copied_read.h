// SPDX-License-Identifier: Apache-2.0
// Which elements of tensors that element-wise work reads are copied to shared memory first.
#pragma once

#include <cstdint>

#include "schedule/nest/build.h"

namespace nautilus::schedule {

// How elements of a tensor reach the tile of [rows, columns] of the element-wise work that reads
// them.
enum class CopiedRead : uint8_t {
  No,        // one by one
  Box,       // copied: rows of the tensor along rows, its last dimension along columns
  RowPiece,  // copied: a piece of its last dimension, the same for all rows
};
CopiedRead copied_read(Expr read, const ir::Axes& axes, const Target& target, expr::ExprPool& pool);

}  // namespace nautilus::schedule

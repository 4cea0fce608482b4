// SPDX-License-Identifier: Apache-2.0
// A read under a condition that does nothing but keep it inside its tensor, as a read of a larger
// tensor that has zeros around it:
//
//   where(i + r >= 1 and i + r < H + 1, x[i + r - 1, c], 0.0)          i < H, r < 3
// reads `padded[i + r, c]` of
//   padded[x0 < H + 2, c < C] = where(x0 >= 1 and x0 < H + 1, x[x0 - 1, c], 0.0)
//
// A copy of such a tensor costs no more than one of the tensor itself, and nothing has to ask where
// its elements are.
#pragma once

#include <optional>

#include "expr/bounds/bounds.h"
#include "ir/op.h"

namespace nautilus::spec {

struct PaddedRead {
  ir::Axes axes;             // of the larger tensor
  ir::Expr value;            // of its elements, over these axes
  std::vector<ir::Expr> at;  // indices of the read there
};

// `type`: of the tensor that is read; `around`: all axes of the read; `facts`: about sizes. Nothing
// if the condition says more, or an index is no sum of multiples of axes.
std::optional<PaddedRead> padded_read(ir::Expr condition, ir::Expr read, const ir::TensorType& type,
                                      const ir::Axes& around, const expr::Facts& facts,
                                      expr::ExprPool& pool);

}  // namespace nautilus::spec

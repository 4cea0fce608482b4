// SPDX-License-Identifier: Apache-2.0
// Conditions that only keep an element inside its tensor:
//
//   where(i + r >= 1 and i + r - 1 < H, f32(x[i + r - 1, c]), 0.0)          x: bf16[H, C]
//
// Copies of boxes read 0 outside a tensor, so such an operand of a product is loaded like the
// element itself.
#pragma once

#include <span>

#include "expr/expr.h"

namespace nautilus::algebra {

// Whether an integer comparison says `0 <= index` or `index < dim` of one of the indices, however
// it is written.
bool is_inside_test(expr::Expr comparison, std::span<const expr::Expr> indices,
                    std::span<const expr::Expr> dims);

// An element of a tensor, perhaps converted, where a condition holds, and 0 elsewhere.
struct GuardedElement {
  expr::Expr read;       // null: the factor is something else
  expr::Expr condition;  // null: it always holds
};
GuardedElement guarded_element(expr::Expr factor);
// Whether the condition is made of such tests alone. `dims`: of the element's tensor.
bool keeps_inside(const GuardedElement& element, std::span<const expr::Expr> dims);

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
// What a sum of products multiplies, as matrix instructions would take it.
#pragma once

#include <optional>
#include <utility>

#include "spec/equations.h"

namespace nautilus::spec {

// The two operands of an f32 product of matrices, that of the rows first; nothing if it is none, or
// if 16 bits hold both, or one of them so that the other may be rounded, too. `let` is a sum.
std::optional<std::pair<expr::Expr, expr::Expr>> product_operands(const Let& let,
                                                                  expr::ExprPool& pool);

// Whether all tensors are read at axes, sizes and constants.
bool has_plain_places(expr::Expr e);

}  // namespace nautilus::spec

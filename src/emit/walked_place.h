// SPDX-License-Identifier: Apache-2.0
// Places of elements that are counted through two dimensions, x[.., k / W, k % W]. Where rows lie
// behind each other in memory, which is asked once for a kernel, the place is k itself; a quotient
// and a remainder for each vector would be most of what a walk over them computes.
#pragma once

#include <optional>
#include <span>

#include "expr/expr.h"

namespace nautilus::emit {

struct WalkedPlace {
  expr::Expr first;    // row where the count begins; null if that is 0
  expr::Expr count;    // k
  expr::Expr columns;  // W
};

// Of the last two of the indices; nothing if they are no such count, or W is a constant, by which
// the compiler divides fast.
std::optional<WalkedPlace> walked_place(std::span<const expr::Expr> indices);

}  // namespace nautilus::emit

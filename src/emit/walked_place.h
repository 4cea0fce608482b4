// SPDX-License-Identifier: Apache-2.0
// Places of elements that one count runs through in two dimensions, x[.., k / W, k % W]. Where rows
// are contiguous in memory, which a kernel tests once, the place is k itself; a quotient and a
// remainder for each vector would be most of the instructions of such a walk.
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

// Of the last two indices; nothing if they have another form, or if W is a constant, by which the
// device compiler divides fast.
std::optional<WalkedPlace> walked_place(std::span<const expr::Expr> indices);

}  // namespace nautilus::emit

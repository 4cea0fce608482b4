// SPDX-License-Identifier: Apache-2.0
// The conditions of a conjunction: `a and (b and c)` asks a, b and c. What is known, proved or
// written of a condition is so of each of them for itself.
#pragma once

#include <vector>

#include "expr/expr.h"

namespace nautilus::expr {

// In the order in which they stand; any other condition is its only one, and null
// has none.
std::vector<Expr> conjuncts(Expr condition);

}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
// Comparisons of indices in one form, however they are written.
#pragma once

#include "expr/bounds/affine.h"

namespace nautilus::expr {

// The polynomial that is at most 0 where the comparison of i64 holds; empty for other conditions.
std::optional<Poly> at_most_zero(Expr condition);

}  // namespace nautilus::expr

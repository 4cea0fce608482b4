// SPDX-License-Identifier: Apache-2.0
// The structure of weights: exponentials of scores relative to a reference (speculate.h).
#pragma once

#include <vector>

#include "matile/rewrite.h"

namespace nautilus::matile {

// A guard of a reference that has not moved yet, `where(m[i] == -inf, 0.0, m[i] * c)`: a number
// where an element of a tile of rows is infinite.
bool is_guard(ir::Expr x);

// The guards of references with the largest finite number in the place of the reference: relative
// to it no finite score has a weight of 0, and an infinite one still has. `unset` are their
// conditions.
ir::Expr with_far_guards(ir::Expr e, const std::vector<ir::Expr>& unset, expr::ExprPool& pool);

// True if the value is known not to be below 0; `tiles` are known not to be.
bool is_nonnegative(ir::Expr e, const Names& tiles);

// What a fold sums along its second axis, `[l[i] +] sum[j] ...`; null otherwise.
ir::Expr summed(const Fold& fold);
// The tile, if the fold sums a plain tile.
ir::Name summed_tile(const Fold& fold);

// The exponentials of an expression that read one of the tiles.
std::vector<ir::Expr> exponentials(ir::Expr e, const Names& tiles);

}  // namespace nautilus::matile

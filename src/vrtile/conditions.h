// SPDX-License-Identifier: Apache-2.0
// Analysis of conditions: conjunctions, integer comparisons as polynomials, signs of scalars.
#pragma once

#include <optional>
#include <vector>

#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "ir/op.h"

namespace nautilus::vrtile {

// The parts of a conjunction, and back; the conjunction of nothing is null.
using expr::conjuncts;
ir::Expr conjunction(expr::ExprPool& pool, const std::vector<ir::Expr>& parts);

// An integer comparison as p >= 0; empty for other conditions.
std::optional<expr::Poly> as_nonnegative(ir::Expr condition);

// True if the float is above 0 for every call: constants, scalars that are positive by a fact of
// the program, products and quotients.
bool is_positive(const ir::Program& program, ir::Expr e);

// The constant that the op sets all elements of its tile to; null for other ops.
ir::Expr filled_with(const ir::Op& op);

}  // namespace nautilus::vrtile

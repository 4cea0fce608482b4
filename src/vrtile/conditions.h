// SPDX-License-Identifier: Apache-2.0
// Conditions taken apart: conjunctions, integer comparisons as polynomials, signs of scalars.
#pragma once

#include <optional>
#include <vector>

#include "expr/bounds/affine.h"
#include "ir/op.h"

namespace nautilus::vrtile {

// The parts of a conjunction, and back; the conjunction of nothing is null.
std::vector<ir::Expr> conjuncts(ir::Expr condition);
ir::Expr conjunction(expr::ExprPool& pool, const std::vector<ir::Expr>& parts);

// An integer comparison as p >= 0; empty if the condition is none.
std::optional<expr::Poly> as_nonnegative(ir::Expr condition);

// True if the float is above 0 for every call: constants, scalars that a fact of the program says
// so of, products and quotients.
bool is_positive(const ir::Program& program, ir::Expr e);

// The value at which all elements of the tile that the op sets are the same constant; null if it is
// no such op.
ir::Expr filled_with(const ir::Op& op);

}  // namespace nautilus::vrtile

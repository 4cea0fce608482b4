// SPDX-License-Identifier: Apache-2.0
// How a value combines two operands. Simplification writes a sum with a negated operand as a
// difference: it is a step of a sum all the same.
#pragma once

#include <array>
#include <optional>

#include "expr/expr.h"

namespace nautilus::expr {

struct Combination {
  Reducer reducer = Reducer::Sum;
  std::array<Expr, 2> operands;
};

// Nothing if no reducer combines two operands so.
std::optional<Combination> combination_of(Expr value, ExprPool& pool);

}  // namespace nautilus::expr

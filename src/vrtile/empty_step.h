// SPDX-License-Identifier: Apache-2.0
// Whether a loop may run one step when it would run none.
//
// A step behind the end of what is streamed loads nothing but fills, and often changes nothing:
// masked scores are -inf, their exponentials 0, sums and the maximum stay. That is followed here by
// computing the first step, from the initial values and under the condition that the range is
// empty, on tiles filled with one number.
#pragma once

#include <unordered_map>

#include "expr/bounds/bounds.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

// Numbers that tiles outside the loop are filled with.
using Fills = std::unordered_map<ir::Name, ir::Expr>;

// True if every value that the loop carries is the same after a first step as before, given that
// `facts` hold and that the loop's range is empty; and if that step reads no tensor.
bool is_first_step_idle(const ir::Program& program, const For& loop, const Fills& fills,
                        const expr::Facts& facts, expr::ExprPool& pool);

// The number that the expression is if tiles are filled so; null if it is not known.
ir::Expr value_with_fills(const ir::Program& program, ir::Expr e, const Fills& fills,
                          expr::ExprPool& pool);

}  // namespace nautilus::vrtile

// SPDX-License-Identifier: Apache-2.0
// Whether an empty loop may run one step.
//
// A step after the end of the streamed axis loads only fills, and often changes nothing: masked
// scores are -inf, their exponentials 0, and sums and the maximum stay. This is checked by
// computing the first step on tiles filled with one number, from the initial values and under the
// condition that the range is empty.
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

// The value of the expression with these fills; null if it is not known.
ir::Expr value_with_fills(const ir::Program& program, ir::Expr e, const Fills& fills,
                          expr::ExprPool& pool);

}  // namespace nautilus::vrtile

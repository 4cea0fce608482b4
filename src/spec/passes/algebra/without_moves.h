// SPDX-License-Identifier: Apache-2.0
// What passes that divide sums leave behind: equations that only put elements of other tensors
// into place, written where they are read so that they pass through memory once at most.
#pragma once

#include "spec/equations.h"

namespace nautilus::spec {

// The program without those of the equations that only choose among elements of tensors, where all
// who read them can read those elements themselves: no output, and no operand of a contraction,
// which has to be an element. Those with a little arithmetic go, too, where only windows read them
// (pooling): memory takes longer.
ir::Program without_moves(const ir::Program& program, const std::unordered_set<ir::Name>& equations,
                          expr::ExprPool& pool);

// Whether some contraction of the program has the tensor as operand.
bool is_operand(const ir::Program& program, ir::Name tensor, expr::ExprPool& pool);

// Whether a reduction in the equation has no axes but those of the equation and its own.
bool is_of_axes(const Let& let, ir::Expr reduction, expr::ExprPool& pool);

}  // namespace nautilus::spec

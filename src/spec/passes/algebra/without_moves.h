// SPDX-License-Identifier: Apache-2.0
// Inlines equations that only put elements of other tensors into place, as passes that divide sums
// add them, so that these elements pass through memory at most once.
#pragma once

#include "spec/equations.h"

namespace nautilus::spec {

// The program without those of the equations that only choose among elements of tensors, if all
// readers can read those elements themselves. Outputs stay, and so do operands of contractions,
// which have to be elements. Equations with a little arithmetic are inlined, too, where only
// windows read them (pooling): memory would take longer.
ir::Program without_moves(const ir::Program& program, const std::unordered_set<ir::Name>& equations,
                          expr::ExprPool& pool);

// Whether the tensor is an operand of some contraction of the program.
bool is_operand(const ir::Program& program, ir::Name tensor, expr::ExprPool& pool);

// Whether a reduction in the equation has only the axes of the equation and its own.
bool is_of_axes(const Let& let, ir::Expr reduction, expr::ExprPool& pool);

}  // namespace nautilus::spec

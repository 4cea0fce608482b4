// SPDX-License-Identifier: Apache-2.0
// Conditions with a right operand that is read only where the left one does not decide.
#pragma once

#include <map>
#include <string>

#include "expr/bounds/bounds.h"
#include "spec/ops.h"

namespace nautilus::spec {

// The body of an equation with `a and b` as `where(a, b, false)`, and `a or b` as `where(a, true,
// b)`, if `b` has a read that is not proven to be inside its tensor: the only operator that guards
// reads on the levels below is `where`. Other conditions stay as written, because masks are
// analysed in that form.
ir::Expr guard_conditions(const Let& let, const expr::Facts& facts,
                          const std::map<std::string, ir::TensorType>& types, expr::ExprPool& pool);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// What an operator costs, for all that compares the time of expressions.
#pragma once

#include "expr/expr.h"
#include "target/target.h"

namespace nautilus::algebra {

// Issue slots of one warp for an element of the operator's result, operands not counted. Reads and
// selects depend on where they stand: here they count as one operation.
double op_slots(expr::Op op, const target::Costs& costs);

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
// Removes predicted cycles from expectations, so that new constants of a machine change only the
// tests of its cost model. A changed choice still shows.
#pragma once

#include <string>
#include <string_view>

#include "expr/expr.h"
#include "ir/op.h"

namespace nautilus::driver {

// Scheduled programs: a line `cost ...` in place of an expression.
ir::Program without_costs(ir::Program program, expr::ExprPool& pool);

// Derivations and sweeps: `... cycles`, and the units of a candidate (`: matrix 587, ...`) as
// `...`.
std::string without_cycles(std::string_view text);

}  // namespace nautilus::driver

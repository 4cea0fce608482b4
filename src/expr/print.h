// SPDX-License-Identifier: Apache-2.0
// Expressions as text. The text parses back to the same expression (expr/build.h): constants carry
// their dtype as a cast unless it is the default one (i64 for integers, f32 for floats),
// parentheses are printed only where the grammar needs them.
#pragma once

#include <string>

#include "expr/expr.h"

namespace nautilus::expr {

std::string to_string(Expr e);
void print(std::string& out, Expr e);

}  // namespace nautilus::expr

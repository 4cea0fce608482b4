// SPDX-License-Identifier: Apache-2.0
// Small literal tables: `table w = [0.25, 0.5, 0.25]`, `table G = [[1, 0], [0, -1]]`.
#pragma once

#include "spec/language/math_syntax.h"
#include "text/lexer.h"

namespace nautilus::spec {

// Reads the text after the name and `=` of a table, and adds the table as an equation: its elements
// chosen by their indices, `w[k < 3] = where(k < 1, 0.25, where(k < 2, 0.5, 0.25))`. So the levels
// below need no tables.
bool parse_table(text::Cursor& cursor, const NameSyntax& name, MathSyntax& out);

}  // namespace nautilus::spec

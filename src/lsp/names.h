// SPDX-License-Identifier: Apache-2.0
// What the names of a program mean and where they are defined.
#pragma once

#include <optional>
#include <string>

#include "ir/op.h"
#include "lsp/analysis.h"

namespace nautilus::lsp {

// Adds meanings, uses and the outline of a text of the math language. They follow its syntax, so
// that they are there while a program is being written; extents and dtypes that the text leaves
// open come from `program`, where it is known. Statements that do not parse have none.
void add_names(const std::string& text, const std::optional<ir::Program>& program, Analysis& out);

}  // namespace nautilus::lsp

// SPDX-License-Identifier: Apache-2.0
// Programs from text, driven by the same format strings as the printer.
#pragma once

#include <optional>
#include <vector>

#include "diag/diagnostic.h"
#include "ir/op.h"

namespace nautilus::ir {

// Reads `<level>.program @name` and its ops. `levels` lists the levels that may appear. Empty if
// something was reported. The result is well-formed, not yet verified.
std::optional<Program> parse(uint32_t file, const std::vector<const Level*>& levels,
                             expr::ExprPool& pool, diag::Sink& sink);

// One op of a vocabulary, such as a line of a schedule.
std::optional<Op> parse_op(uint32_t file, const std::vector<const OpInfo*>& vocabulary,
                           expr::ExprPool& pool, diag::Sink& sink);

}  // namespace nautilus::ir

// SPDX-License-Identifier: Apache-2.0
// What a pass gets besides the program.
//
// A pass is a function from a program to a program (or to nothing, when it reported a diagnostic).
// It never changes its input. The list of all passes is driver/pipeline.cc.
#pragma once

#include <optional>

#include "diag/diagnostic.h"
#include "expr/expr.h"
#include "ir/op.h"

namespace nautilus::ir {

struct PassContext {
  expr::ExprPool& pool;
  diag::Sink& sink;
  // Rewrite rules switched off by name, for bisection.
  std::vector<std::string> disabled_rules;
  // What passes decided, as decision ops in the order in which they did (decision/decisions.h);
  // null if nobody asks.
  Block* decided = nullptr;

  // The same for an attempt, whose messages and decisions count only if it succeeds.
  PassContext with(diag::Sink& messages, Block& decisions) const {
    return {pool, messages, disabled_rules, &decisions};
  }
};

using Pass = std::optional<Program> (*)(const Program&, PassContext&);

}  // namespace nautilus::ir

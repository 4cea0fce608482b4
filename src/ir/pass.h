// SPDX-License-Identifier: Apache-2.0
// What a pass gets in addition to the program.
//
// A pass is a function from a program to a program (or to nothing, when it reported a diagnostic).
// It never changes its input. The table of all passes is compile/passes.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/diagnostic.h"
#include "expr/expr.h"
#include "ir/op.h"

namespace nautilus::ir {

// The programs between passes, for dumps: one step for each pass that changed a program.
struct PassTrace {
  struct Step {
    std::string unit;       // the kernel, if the program is one kernel, or the program's name
    std::string_view pass;  // its name in the table
    Program program;        // `after` names the pass that it comes from
    double ms = 0;
  };
  std::vector<Step> steps;
};

struct PassContext {
  expr::ExprPool& pool;
  diag::Sink& sink;
  // Rewrite rules switched off by name, for bisection.
  std::vector<std::string> disabled_rules;
  // Where the steps are recorded; null if they are not needed.
  PassTrace* trace = nullptr;
  // What passes decided, as decision ops in the order of the decisions (decision/decisions.h); null
  // if not needed.
  Block* decided = nullptr;

  // The same for an attempt: its messages and decisions count only if it succeeds.
  PassContext with(diag::Sink& messages, Block& decisions) const {
    return {pool, messages, disabled_rules, trace, &decisions};
  }
};

using Pass = std::optional<Program> (*)(const Program&, PassContext&);

}  // namespace nautilus::ir

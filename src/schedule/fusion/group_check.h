// SPDX-License-Identifier: Apache-2.0
// Whether a group is legal as a kernel, and what has to leave it if it is not.
#pragma once

#include "schedule/fusion/group.h"

namespace nautilus::schedule {

struct GroupCheck {
  bool is_ok = true;
  std::string code;
  std::string message;
  std::vector<int> outside;  // statements to put outside before trying again; empty: give up
  bool is_cut = false;       // the seed needs them: they become an earlier pass
};

// Sets the group's row axis and its dots. `row`: the axis asked for, or null.
GroupCheck check_group(Group& group, const StatementList& list, const ir::Program& program,
                       Expr row, const algebra::Signs& signs, expr::ExprPool& pool);

}  // namespace nautilus::schedule

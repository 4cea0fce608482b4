// SPDX-License-Identifier: Apache-2.0
// Which axis of a group is the row of its contractions, and whether the group is legal as a kernel.
#pragma once

#include "schedule/group.h"

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

// The factors of a product, in order.
std::vector<Expr> factors_of(Expr e);
// A tensor element of a 16-bit float, possibly widened: what a matrix instruction takes as it is.
bool is_half_read(Expr factor);

}  // namespace nautilus::schedule

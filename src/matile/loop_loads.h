// SPDX-License-Identifier: Apache-2.0
// What a loop of a kernel of points loads in a turn: whether turns can have their loads under way
// together.
#pragma once

#include "expr/build.h"
#include "matile/ops.h"

namespace nautilus::matile {

// An element under a condition, and a number elsewhere: one load that is or is not done.
bool is_load_where(expr::Expr e);

// Elements that a turn of the loop loads. 0 if its turns cannot be taken together: their number is
// known, they have loops or writes in them, or a load behind a branch, which waits for those before
// it.
int64_t loads_of_turn(const Loop& l, expr::ExprPool& pool);

}  // namespace nautilus::matile

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

// Of a loop that writes in its turns, as the steps of a scan do: what a turn loads whatever
// happens, at places that are known before it, from tensors that the loop does not write. Loads of
// several turns can be done before those turns; behind a write a load waits, since both may be one
// place. Nothing if there are loops or branches in it.
std::vector<expr::Expr> loads_ahead(const Loop& l, expr::ExprPool& pool);

}  // namespace nautilus::matile

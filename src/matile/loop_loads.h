// SPDX-License-Identifier: Apache-2.0
// The loads of a loop of a point kernel in one turn: whether turns can have their loads in flight
// together.
#pragma once

#include "expr/build.h"
#include "matile/ops.h"

namespace nautilus::matile {

// An element under a condition, and a number elsewhere: one predicated load.
bool is_load_where(expr::Expr e);

// Elements that a turn of the loop loads. 0 if turns cannot be joined: their number is known, they
// contain loops or writes, or a load after a branch, which waits for the loads before it.
int64_t loads_of_turn(const Loop& l, expr::ExprPool& pool);

// For a loop that writes in its turns, like the steps of a scan: the elements that a turn always
// loads, at places known before it, from tensors that the loop does not write. Loads of several
// turns can be issued before those turns; a load after a write waits, because both may have the
// same address. Empty if the loop contains loops or branches.
std::vector<expr::Expr> loads_ahead(const Loop& l, expr::ExprPool& pool);

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// An order among the groups of a compute role where it pays.
//
//   loop n from 0 up nt                turn issue over compute
//     get ks_ring                      ...
//     dot S init qs, ks trans          loop n from 0 up nt
//     set S[...] = exp2(S[...])  ->      get ks_ring
//     ...                                enter issue
//                                        dot S init qs, ks trans
//                                        leave issue
//                                        set S[...] = exp2(S[...])
//
// Around the products of loops that issue them together and whose register work then reads their
// results: while one group computes, another issues. Around all products of a tile where groups
// alternate tiles, and around what a tile gets behind them: a group must not run a whole ring ahead
// of the other, whose slots it jumps over. An iteration that a group skips is an empty turn. Loops
// of products alone need no order. `decide turn = 0` leaves turns out where they are not needed.
//
// Needs roles form, keeps it. Test: test/matile/passes/place_turns.matile.
std::optional<ir::Program> place_turns(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

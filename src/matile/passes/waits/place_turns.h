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
// Turns go around products that a loop issues together and then reads in register work: while one
// group computes, another issues. Where groups alternate tiles, they go around all products of a
// tile, and around the slots that a tile gets after them: a group must not run a whole ring ahead
// of the group whose slots it jumps over. An iteration that a group skips is an empty turn. Loops
// of products alone need no order. `decide turn = 0` leaves turns out where they are not needed.
//
// Needs roles form, keeps it. Test: test/matile/passes/place_turns.matile.
std::optional<ir::Program> place_turns(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

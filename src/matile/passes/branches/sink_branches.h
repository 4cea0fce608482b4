// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Selects on a vote become uniform branches (R8).
//
//   vote up = any[i < 64] (...)                          vote up = any[i < 64] (...)
//   set m1[i < 64] = where(up, max(m[i], t[i]), m[i])    set m1[i < 64] = m[i]
//   set a[i < 64] = where(up, exp2(m[i] - m1[i]), 1.0)   set l1[i < 64] = l[i]
//   set l1[i < 64] = l[i] * a[i]                   ->    if up
//                                                          set m1_new[i < 64] = max(m[i], t[i])
//                                                          set a[i < 64] = exp2(m[i] - m1_new[i])
//                                                          set m1[i < 64] = m1_new[i]
//                                                          set l1[i < 64] = l[i] * a[i]
//
// * `where(c, f(x), x)`: x is kept, then replaced in the branch. The copies in front are free once
//   the tiles share registers (share_registers); a new value that old ones are still needed with
//   has a name of its own inside the branch.
// * `where(c, f, k)` with a constant k needs no else if every use is one that k leaves as it was:
//   l * a is l for a = 1.
// * What only a branch uses moves into it. Branches of one vote are joined where the ops between
//   them allow it, except for tiles that products in flight write: those would have to be waited
//   for early.
//
// Needs nest form in which every vote and tile of a block is written once, keeps the form. Test:
// test/matile/passes/sink_branches.matile.
std::optional<ir::Program> sink_branches(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

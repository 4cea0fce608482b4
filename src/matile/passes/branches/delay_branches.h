// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// A branch on a vote moves after the register work that does not need it.
//
//   set S[i < 64, j < 64] = exp2(S[i, j])         set S[i < 64, j < 64] = exp2(S[i, j])
//   wait 0 for U                                  wait 0 for U
//   if up                                   ->    set P[i < 64, j < 64] = bf16(S[i, j])
//     set U[i < 64, e < 64] = U[i, e] * a[i]      if up
//   set P[i < 64, j < 64] = bf16(S[i, j])           set U[i < 64, e < 64] = U[i, e] * a[i]
//
// Why: the assembler reorders instructions only between branches. Next to the exponentials the
// casts fill issue slots that the exponentials leave open; after a branch they need slots of their
// own.
//
// Needs final form, keeps it. Test: test/matile/passes/delay_branches.matile.
std::optional<ir::Program> delay_branches(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

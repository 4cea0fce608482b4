// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// A reference that moves only now and then is not looked for in every step: weights are taken
// against the old one at once, and only where their sum leaves the range of the dtype the product
// is repeated by the warps concerned and the reference moved.
//
//   wait 1 for S                                 wait 1 for S
//   release Kr                                   set mc[i < 64] = m[i] * c
//   fold mt[i < 64] = max[j < 80] S[i, j]        set S[i < 64, j < 80] = exp2(S[i, j] * c - mc[i])
//   vote up = any[i < 64] ((mt[i] - m[i]) * c    fold lt[i < 64] = sum[j < 80] S[i, j]
//       > 8.0)                                   vote up = any[i < 64] (not lt[i] < 2^60)
//   if up                                        if up
//     ... move m by mt, repair l                   warpdot S qs, ks trans
//   set mc[i < 64] = m[i] * c              ->      fold mt[i < 64] = max[j < 80] S[i, j]
//   set S[i < 64, j < 80] =                        ... move m by mt, repair l
//       exp2(S[i, j] * c - mc[i])                  set mc, set S, fold lt as above
//   fold l[i < 64] = l[i] + sum[j < 80] S[i, j]  set l[i < 64] = l[i] + lt[i]
//                                                release Kr
//
// Legal because every sequence of references gives the same results: that is what made the vote
// possible (vrtile/passes/lazy_reference.h). What is needed besides (speculative_step.h):
//
// * The weights may be made by any element-wise sets, and be in tiles or in a sum alone. A sum of
//   weights that are not below 0 shows their range; of others the absolute values are summed for
//   it.
// * Below 2^60 weights keep in f32 and bf16 the relative accuracy that they have at 1; what is made
//   of their squares, or rounded to f16, lowers the limit (reference_powers.h). A reference that is
//   still -inf makes weights infinite, which the vote finds. Where it is guarded, because all
//   scores so far may have been -inf, `where(m[i] == -inf, 0.0, m[i])`, the guess takes the largest
//   number below 0 instead: scores of -inf still have no weight, any other makes the sum positive,
//   and the vote asks for that: `m[i] == -inf and lt[i] > 0.0`. The same holds of a minimum and
//   inf.
// * The step can begin again: scores that were overwritten come from their product once more, if
//   it is one of two parts in slots, of which the streamed one is then held for longer; else from a
//   copy.
//
// By rule done where groups share the matrix unit, register work takes more than half as long as
// the products, and registers are left for the repeated product; a sum that is there must show the
// range, and masked steps with a guarded reference stay as they are. A line `reference speculative`
// asks for it in any kernel with such a step. Needs final form, keeps it.
// Tests: test/matile/passes/speculate.matile, test/fires/speculation.naut.
std::optional<ir::Program> speculate(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Steps do not look for the new reference if it rarely moves: weights are computed with the old
// reference at once. Only where their sum leaves the range of the dtype do the warps concerned
// repeat the product and move the reference.
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
// Legal because every sequence of references gives the same results, which also made the vote
// possible (vrtile/passes/lazy_reference.h). Further conditions (speculative_step.h):
//
// * Any element-wise sets may compute the weights, in tiles or only in a sum. A sum of
//   weights that are not below 0 shows their range; for others the absolute values are summed for
//   it.
// * Below 2^60 weights keep in f32 and bf16 the relative accuracy that they have at 1; what is made
//   of their squares, or rounded to f16, lowers the limit (reference_powers.h). A reference that is
//   still -inf makes weights infinite, which the vote detects. Where it is guarded, because all
//   scores so far may have been -inf, `where(m[i] == -inf, 0.0, m[i])`, the guess takes the largest
//   number below 0 instead: scores of -inf still have no weight, any other makes the sum positive,
//   and the vote asks for that: `m[i] == -inf and lt[i] > 0.0`. The same holds of a minimum and
//   inf.
// * The step can begin again: scores that were overwritten come from their product once more, if
//   it is one of two slot tiles in slots, of which the streamed one is then held for longer; else
//   from a copy.
//
// By rule this is done where groups share the matrix unit, register work takes more than half as
// long as the products, and registers are free for the repeated product. An existing sum must show
// the range, and masked steps with a guarded reference stay unchanged. A line `reference
// speculative` asks for it in any kernel with such a step. Needs final form, keeps it. Tests:
// test/matile/passes/speculate.matile, test/fires/speculation.naut.
std::optional<ir::Program> speculate(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

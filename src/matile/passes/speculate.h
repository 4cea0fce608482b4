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
// possible (vrtile/passes/gauge.h). Weights are powers of two, so none is above their sum; below
// 2^60 they keep the relative accuracy they have at 1 in f32 and bf16, not in f16. A reference that
// is still -inf makes them infinite, which the vote finds. Where it is guarded, because all scores
// so far may have been -inf, `where(m[i] == -inf, 0.0, m[i])`, the guess takes the largest number
// below 0 instead: scores of -inf still have no weight, any other makes the sum positive, and the
// vote asks for that: `m[i] == -inf and lt[i] > 0.0`. Such steps with a mask stay as they are. The
// product must be one of two parts in slots, of which the
// streamed one is then held for longer.
//
// Done where groups share the matrix unit, register work takes more than half as long as the
// products, and registers are left for the repeated product. Needs final form, keeps it.
// Test: test/matile/passes/speculate.matile.
std::optional<ir::Program> speculate(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

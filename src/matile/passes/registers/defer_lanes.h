// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Moves the exchange between lanes of a reduction to where its value is first needed (R7).
//
//   loop n from 0 up nt                        loop n from 0 up nt
//     fold t = sum[j] S[i, j]                    fold l = l * a + sum[j] S[i, j]
//     lanes t sum                        ->    lanes l sum
//     set l = l * a + t                        set y = 1.0 / l
//   set y = 1.0 / l
//
// * Sums through loops: tiles that are linked by sets linear in them, with factors that the lanes
//   share, are carried as partial values; the exchange comes before the first use of another
//   kind, outside the loops. Zero is its own partial value; of
//   another initial element each lane keeps its share, `shares l sum`.
// * Within a block an exchange moves down to the first op that needs it, and into a branch if only
//   that one does. A vote needs none if its condition grows with the value:
//   any(max_j x > y) = any_j(x > y).
//
// Needs nest form with split reductions, keeps it. Test: test/matile/passes/defer_lanes.matile.
std::optional<ir::Program> defer_lanes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
// A loop with partly masked steps becomes a sequence of loops: steps in which the mask decides
// (mixed) and steps in which it holds everywhere (live), where it disappears.
//
//   for n from 9 down 0
//     carry l : f32[64] from l_init next l_next
//     set t[i < 64, j < 80] = where(80 * n + j <= i + d, s[i, j], -inf)
//     ...
// becomes
//   let n_live = (d - 79) / 80
//   for n from 9 down max(n_live + 1, 0)
//     carry l : f32[64] from l_init next l_next
//     set t[i < 64, j < 80] = where(80 * n + j <= i + d, s[i, j], -inf)
//     ...
//   for n from min(9, n_live) down 0
//     carry l_1 : f32[64] from l next l_next
//     set t[i < 64, j < 80] = s[i, j]
//     ...
//
// Conjuncts of a condition that are integer comparisons linear in the loop's variable give the
// range in which they hold at every point of the tile. Carried values pass from one loop to the
// next. Conditions bounded on both sides give three loops: mixed, live, mixed. In a live step a
// guard `where(x == -inf, y, x)` is removed where x is shown to be above -inf.
//
// Test: test/vrtile/specialise_segments.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> specialise_segments(const ir::Program& program,
                                               ir::PassContext& context);

}  // namespace nautilus::vrtile

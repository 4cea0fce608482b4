// SPDX-License-Identifier: Apache-2.0
// A loop that counts up to an end that differs between warp groups counts down from it instead: the
// groups then end together, on the same tiles. A loop in which only the last steps are masked is
// reversed, too: its first step, which other passes peel, is then the masked one, and the remaining
// steps need no second loop with masks.
//
//   par w < 3 group
//     for n from 0 up 2 * w + 1
//       carry l : f32[64] from l_init next l_next
//       reduce s[i < 64] = sum[j < 80] x[i, j]
//       set l_next[i < 64] = l[i] + s[i]
// becomes
//   par w < 3 group
//     for n from 2 * w down 0
//       ...
//
// Only if the order of the steps makes no difference: every carried value is a sum, a maximum or a
// minimum of values that the steps compute without it, or such a sum relative to a running
// reference (vrtile/references.h). Test: test/vrtile/reverse_loops.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> reverse_loops(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile

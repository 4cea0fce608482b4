// SPDX-License-Identifier: Apache-2.0
// A scan whose steps only combine the state with a term, by a warp for each point: its lanes take
// steps beside each other, so that they read and write neighbours in memory.
//
//   points i < N                               points i < N by 32
//     value H_before : f32 = 0.0                 value H_carry : f32 = z[i]
//     loop t from 0 up T                         walk t up T
//       let H_value =                              value H_lane : f32 = where(t < T, X[i, t], 0.0)
//         where(t >= 1, H_before, z[i])     ->     value H_all : f32 = 0.0
//           + X[i, t]                              scan H_lane sum total H_all
//       write H[i, t] = H_value                    if t < T
//       assign H_before = H_value                    write H[i, t] = H_carry + H_lane
//                                                  assign H_carry = H_carry + H_all
//
// Exact over the reals. Test: test/lower/scan_lanes.naut
#pragma once

#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

// False, and the kernel as it was, if it is no such scan, or if its steps do not lie along memory:
// then threads beside each other do.
bool walk_together(LoweredKernel& parts, int64_t lanes, int64_t threads, FreshNames& names,
                   expr::ExprPool& pool);

}  // namespace nautilus::lower

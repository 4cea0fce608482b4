// SPDX-License-Identifier: Apache-2.0
// A scan whose steps only combine the state with a term, with several steps of a thread beside each
// other, by a warp or a CTA for each point:
//
//                                            layout
//                                              lanes 256
//                                              threads 256
//   points i < N                             points i < N
//     value H_before : f32 = 0.0               value H_carry : f32 = z[i]
//     loop t from 0 up T                       walk t up T each 16 vector 4
//       let H_value =                            value H_lane : f32 = X[i, t]
//         where(t >= 1, H_before, z[i])   ->     value H_all : f32 = 0.0
//           + X[i, t]                            scan H_lane sum total H_all
//       write H[i, t] = H_value                  write H[i, t] = H_carry + H_lane
//       assign H_before = H_value                assign H_carry = H_carry + H_all
//
// A term of the step before, `where(t >= 1, X[i, t - 1], 0.0)`, is that of the step itself, taken
// behind it (`scan .. before`), if the tensor has an element for every step: then its vectors are
// those of the results. Exact over the reals. Test: test/lower/scan_lines.naut
#pragma once

#include <map>
#include <string>

#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

struct ScanLines {
  int64_t lanes = 1;   // of a warp, or all threads of a CTA
  int64_t each = 1;    // steps of a thread in a round
  int64_t vector = 1;  // neighbours among those
};

// False, and the kernel as it was, if it is no such scan, or if its steps do not lie along memory.
bool walk_in_lines(LoweredKernel& parts, const ScanLines& lines, int64_t threads,
                   const std::map<std::string, ir::TensorType>& buffers, FreshNames& names,
                   expr::ExprPool& pool);

}  // namespace nautilus::lower

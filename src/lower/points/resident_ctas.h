// SPDX-License-Identifier: Apache-2.0
// For how many CTAs of a multiprocessor a kernel of points leaves registers:
//
//   layout                                layout
//     spread 32 apart 1 down 4      ->      resident 7
//                                           spread 32 apart 1 down 4
//
// Why: windows and scans wait for loads with registers full of elements, and what hides the wait is
// other threads. Exact. Tests: test/schedule/resident.sched
#pragma once

#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

void set_resident(LoweredKernel& parts, int64_t ctas);

}  // namespace nautilus::lower

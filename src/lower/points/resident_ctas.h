// SPDX-License-Identifier: Apache-2.0
// For how many CTAs of a multiprocessor a kernel of points leaves registers:
//
//   points i < M, j < N spread 32 apart 1 down 4  ->  the same, resident 7
//
// Why: windows and scans wait for loads with registers full of elements, and what hides the wait is
// other threads. Exact. Tests: test/schedule/resident.sched
#pragma once

#include "lower/kernel/lowered_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

// By rule: those of windows and of scans along memory; 1 for others, whose registers are as the
// compiler of the text takes them. `choice`: with the threads of this kernel.
int64_t usual_resident(const LoweredKernel& parts, const target::Points& choice);

void set_resident(LoweredKernel& parts, int64_t ctas);

}  // namespace nautilus::lower

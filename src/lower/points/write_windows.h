// SPDX-License-Identifier: Apache-2.0
// Windows of a kernel of points, which are loops of known turns: how many turns are written out.
//
//   layout                                layout
//     spread 32 apart 1 down 4      ->      spread 32 apart 1 down 4
//   points i < M, j < N                     windows 9
//     loop r from 0 up 3                  points i < M, j < N
//       loop s from 0 up 3                  loop r from 0 up 3
//                                             loop s from 0 up 3
//
// Why: points of a thread that are neighbours share what their windows load. Exact. Tests:
// test/schedule/windows.sched
#pragma once

#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

// Why windows of so many turns cannot be written out; empty if they can.
std::string refuse_windows(const LoweredKernel& parts, int64_t turns);

void set_windows(LoweredKernel& parts, int64_t turns);

}  // namespace nautilus::lower

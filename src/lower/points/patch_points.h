// SPDX-License-Identifier: Apache-2.0
// Patches of points: the rows of one operand against the columns of another, in registers.
#pragma once

#include "decision/decisions.h"
#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

// Gives every thread a patch of points along two axes:
//
//   points n < B, f < F, i < H, j < W      layout
//                                            patch f 8 by i 8
//                                          points n < B, f < F, i < H, j < W
//
// A sum of products then loads 16 elements for 64 terms, and rows of windows share theirs. False,
// and the kernel as it was, if lanes or points share its threads otherwise, if it has not two such
// axes, if points branch, write in a loop or walk loops of different lengths.
bool patch(LoweredKernel& parts, const decision::Patch& line, int64_t threads,
           expr::ExprPool& pool);

}  // namespace nautilus::lower

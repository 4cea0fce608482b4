// SPDX-License-Identifier: Apache-2.0
// Elements that are the same in all turns of a loop are read in front of it:
//
//   points i < M, j < N                      points i < M, j < N
//     value a : i32 = 0                        value a : i32 = 0
//     loop k from 0 up N                       let X_kept = X[i, j]
//       assign a = a + i32(X[i, k] > X[i, j])  loop k from 0 up N
//     write P[i, j] = a                          assign a = a + i32(X[i, k] > X[i, j])
//                                              write P[i, j] = a
//
// Why: the loop has one load less in a turn, and the compiler of the machine does not see it: it
// counts such an address along with the others.
//
// Not those in the place of another element or in the condition for reading one: windows and
// patches ask them for several points at once. For elements that are inside their tensor whether
// the loop has turns or not, under those of the conditions around them that are the same in all
// turns. Not for loops that write. Exact. Tests: test/lower/hoist_reads.naut
#pragma once

#include <map>
#include <string>

#include "ir/op.h"
#include "lower/kernel/lowered_kernel.h"

namespace nautilus::lower {

// `axes`: of the points.
ir::Block hoist_reads(const ir::Block& body, const ir::Axes& axes,
                      const std::map<std::string, ir::TensorType>& buffers, FreshNames& names,
                      expr::ExprPool& pool);

}  // namespace nautilus::lower

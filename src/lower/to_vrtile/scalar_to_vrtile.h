// SPDX-License-Identifier: Apache-2.0
// Scheduled scalar nests to tiles: every innermost nest becomes one tile op, every local buffer a
// sequence of tiles, and what a loop writes for its next iteration a carried tile.
//
//   for i < 64, j < 256 map
//     init c[i, j] = 0.0
//   loop k from 0 up (K + 63) / 64
//     for i < 64, j < 256 map
//       for q < 64 reduce
//         update c[i, j] sum f32(A[64 * m + i, 64 * k + q]) * f32(B[256 * n + j, 64 * k + q])
// becomes
//   set c_init[i < 64, j < 256] = 0.0
//   for k from 0 up (K + 63) / 64
//     carry c : f32[64, 256] from c_init next c_next
//     load a[i < 64, q < 64] = A[64 * m + i, 64 * k + q]
//     load b[j < 256, q < 64] = B[256 * n + j, 64 * k + q]
//     dot c_next : f32[64, 256] = a, b trans onto c
//
// Tests: test/lower/tiles_*.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::lower {

// Refuses (NoTileForm) programs with nests that are not scheduled, and statements that are no tile
// op.
std::optional<ir::Program> scalar_to_vrtile(const ir::Program& program, ir::PassContext& context);

// The same for one nest of a program: declarations, and one kernel.
std::optional<ir::Program> nest_to_vrtile(const ir::Program& program, const ir::Op& nest,
                                          ir::PassContext& context);

}  // namespace nautilus::lower

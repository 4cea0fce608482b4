// SPDX-License-Identifier: Apache-2.0
// Axes that always go together become one. A tensor of the program's own is dense, so its last axes
// are one axis in memory; where nests walk over them together, they need no rows:
//
//   for n < B, f < F map                          for n < B, f < F map
//     init s[n, f] = 0.0                            init s[n, f] = 0.0
//     for i < H - 2, j < W - 2 reduce   becomes     for i.j < (H - 2) * (W - 2) reduce
//       update s[n, f] sum z[n, f, i, j]              update s[n, f] sum z[n, f, i.j]
//
// and what writes `z`, or reads it otherwise, has z[n, f, i * (W - 2) + j].
//
// A row of W - 2 elements begins anywhere, so it has no vectors; the rows of all of them have. And
// a row that registers hold is read once, where rows of rows are read once for each reduction.
// Where the last axis has whole vectors anyway, tensors stay as they are. Tensors of the caller
// stay too, because their strides are the caller's; so does one that a tile kernel reads, or that
// is read at places which are not the axes themselves, such as windows.
//
// Always done where it can be: it changes no sum and moves no statement, so there is nothing to
// choose (docs/decisions/0047).
//
// Test: test/choose/join_axes.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Scalar to scalar, before kernels are chosen.
std::optional<ir::Program> join_axes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose

// SPDX-License-Identifier: Apache-2.0
// Chooses kernels for the nests of a scheduled program outside tile kernels: which nests share a
// kernel, its form (rows, points, parts), and which reductions are computed in several steps. Every
// nest that no `kernel` op names gets a kernel:
//
//   for i < M map                           for i < M map
//     init s[i] = 0.0                         ...
//     for j < N reduce            becomes   for i < M, j < N map
//       update s[i] sum X[i, j]               ...
//   for i < M, j < N map                    kernel Y rows
//     store Y[i, j] = X[i, j] / s[i]          fuse s
//
// Nests stay in their order, and a kernel computes consecutive nests. Of all ways to cut their list
// into kernels the one with the least predicted time is chosen (nest_cost.h). The next pass chooses
// how a row kernel walks over its rows (choose_row_shapes.h). Kernels that are named keep their
// lines; a reduction with an `inner` line gets its steps here.
//
// Tests: test/choose/*.naut
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Scalar to scalar. Nothing if a line was refused.
std::optional<ir::Program> choose_kernels(const ir::Program& program, ir::PassContext& context);

// The predicted time of the kernels that it chooses (nest_cost.h).
double cost_without_tiles(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose

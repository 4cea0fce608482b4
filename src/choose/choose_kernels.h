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

#include <functional>
#include <vector>

#include "ir/pass.h"
#include "target/target.h"

namespace nautilus::choose {

// Scalar to scalar. Nothing if a line was refused.
std::optional<ir::Program> choose_kernels(const ir::Program& program, ir::PassContext& context);

// One way to make kernels of the nests that no `kernel` op names.
struct KernelChoice {
  ir::Block kernels;  // `kernel` ops, in their order
  double cost = 0;    // predicted at the sizes of NestCosts
  // Where all sizes are known or were asked for, the cycles on a machine that may have other
  // costs; else 0.
  std::function<double(const target::Target&)> cycles_on = {};
};

// The way that choose_kernels takes, and behind it others that begin to differ from it in one
// kernel.
std::vector<KernelChoice> kernel_choices(const ir::Program& program, ir::PassContext& context);

// The predicted time of the kernels that it chooses (nest_cost.h).
double cost_without_tiles(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose

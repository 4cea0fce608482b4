// SPDX-License-Identifier: Apache-2.0
// Scalar to MA-tile, for a whole program: sizes, scalars and facts as they are, buffers as tensors
// of global memory, every nest as a kernel and a launch, in the order of the nests.
//
//   buffer T : f32[M] temp                  tensor T : f32[M] temp
//   for i < M map                 becomes   kernel T_kernel
//     ...                                     ...
//                                           launch T_kernel grid (M + 127) / 128
//
// Which kernel a nest becomes: rows of memory-bound work (row_kernel.h), else scalar code
// (points_kernel.h). Grid nests have a way of their own through the levels, which the caller knows
// (compile/grid_nest.h). Tests: test/lower/points.scalar, test/lower/rows.naut
#pragma once

#include <string>
#include <string_view>

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/kernel/point_answers.h"

namespace nautilus::lower {

// The kernel of one grid nest of a scalar program. Nothing, and why, if some part of it has no
// counterpart in tiles, or a line of it cannot be followed. A plan that needs the number of
// multiprocessors calls it `sms`, which is declared here.
using LowerGridNest = std::optional<LoweredKernel> (*)(const ir::Program& program,
                                                       const ir::Op& nest, std::string_view name,
                                                       FreshNames& names, ir::PassContext& context,
                                                       NoKernel* refused);

// `rules`: answer for kernels that have no name in the schedule, and where a last tile has no line.
std::optional<ir::Program> program_to_matile(const ir::Program& program,
                                             LowerGridNest lower_grid_nest, PointAnswers& rules,
                                             ir::PassContext& context);

}  // namespace nautilus::lower

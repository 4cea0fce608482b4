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
// (points_kernel.h). Tests: test/lower/points.scalar, test/lower/rows.naut
#pragma once

#include "ir/pass.h"

namespace nautilus::lower {

std::optional<ir::Program> program_to_matile(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::lower

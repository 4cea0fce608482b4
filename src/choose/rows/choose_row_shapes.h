// SPDX-License-Identifier: Apache-2.0
// How row kernels walk over their rows: every `kernel ... rows` op gets the lines that it does not
// have yet. An op without any such line gets an alternative for each range of lengths:
//
//   kernel Y rows                           kernel Y rows
//     fuse s                      becomes     fuse s; columns 1024; vector 1; hold steps
//                                           kernel Y rows
//                                             columns 1024; vector 4; hold row; groups 1 sharing
//                                           ...
//
// Lowering reads these lines and has no rule of its own. Kernels with statements that have no row
// form stay unchanged; lowering refuses them.
//
// Tests: test/choose/row_shapes.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Scalar to scalar.
std::optional<ir::Program> choose_row_shapes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::choose

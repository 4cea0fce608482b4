// SPDX-License-Identifier: Apache-2.0
// What threads of kernels along rows keep in registers, and how many of them they have: the lines
// of each alternative that it does not have yet.
//
//   kernel Y rows                               kernel Y rows
//     fuse m, E, s                     becomes    fuse m, E, s
//     columns 4096; vector 8; hold row            columns 4096; vector 8; hold row
//                                                 keep E on; unpacked m off; registers compute 80
//
// The shape of a row is known here (choose_row_shapes.h); the kernel is made by lowering with the
// rules of row_rules.h in place of lines. Tests: test/choose/row_registers.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Scalar to scalar. Refuses nothing: lowering does.
std::optional<ir::Program> choose_row_registers(const ir::Program& program,
                                                ir::PassContext& context);

}  // namespace nautilus::choose

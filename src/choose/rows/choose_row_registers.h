// SPDX-License-Identifier: Apache-2.0
// What threads of row kernels hold in registers, and how many registers they have: adds the lines
// about that which an alternative does not have yet.
//
//   kernel Y rows                               kernel Y rows
//     fuse m, E, s                     becomes    fuse m, E, s
//     columns 4096; vector 8; hold row            columns 4096; vector 8; hold row
//                                                 keep E on; unpacked m off; registers compute 80
//
// The shape of a row is already chosen (choose_row_shapes.h). To find the lines, lowering makes the
// kernel with the rules of row_rules.h in place of lines. Tests: test/choose/row_registers.scalar
#pragma once

#include "ir/pass.h"

namespace nautilus::choose {

// Scalar to scalar. Refuses nothing: lowering does.
std::optional<ir::Program> choose_row_registers(const ir::Program& program,
                                                ir::PassContext& context);

}  // namespace nautilus::choose

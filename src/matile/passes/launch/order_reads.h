// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Reads of global memory that stay where the text has them.
//
//   kernel Y                                     kernel Y reads ordered
//     layout                                       layout
//       patch f 8 by i 4                  ->         patch f 8 by i 4
//     points f < F, i < H                          points f < F, i < H
//
// Why: the compiler of the text moves free reads to the front of a loop, where each takes a
// register. Threads with a patch have none to spare, nor those that read an element of a tensor for
// each register of a tile (a mask of a softmax: 0.33 ms with free reads, 0.25 with ordered ones),
// and where a tensor that all rows share is loaded was decided already (line `shared`). A line
// `reads` of the kernel says otherwise.
//
// Test: test/matile/passes/order_reads.matile.
std::optional<ir::Program> order_reads(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
// The tensors that a kernel leaves in memory, on every level on which kernels are told apart: a
// nest of loops, a grid of tiles, a finished kernel. Kernels with the same results are
// alternatives.
#pragma once

#include "matile/rewrite.h"

namespace nautilus::matile {

// `kernel`: its body, or several of them. `declared`: where maps of the copy engine and buffers
// inside kernels are declared, the program's body.
Names results_of(const ir::Block& kernel, const ir::Block& declared);

}  // namespace nautilus::matile

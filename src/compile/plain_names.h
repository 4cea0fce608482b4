// SPDX-License-Identifier: Apache-2.0
// A program of one nest with numbered names: nests of equations that differ only in the names of
// their tensors become the same program, so that results for one hold for all.
#pragma once

#include "ir/op.h"

namespace nautilus::compile {

// Sizes of the caller, scalars and the machine keep their names. All others are numbered in the
// order in which the nest, the last op of the program, names them; buffers are declared in that
// order, too.
ir::Program with_plain_names(const ir::Program& program, expr::ExprPool& pool);

}  // namespace nautilus::compile

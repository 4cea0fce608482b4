// SPDX-License-Identifier: Apache-2.0
// A program of one nest with names that say nothing: nests of equations that differ in the names of
// their tensors alone become the same program, so that what is found for one holds for all.
#pragma once

#include "ir/op.h"

namespace nautilus::compile {

// Sizes of the caller, scalars and the machine keep their names. All others are numbered in the
// order in which the nest, the last op of the program, names them; buffers stand in that order,
// too.
ir::Program with_plain_names(const ir::Program& program, expr::ExprPool& pool);

}  // namespace nautilus::compile

// SPDX-License-Identifier: Apache-2.0
// Renames all names of a program but some, so that two programs can be joined.
#pragma once

#include "matile/rewrite.h"

namespace nautilus::matile {

// Names that ops define: of tensors, lets, maps, kernels, tiles, axes.
Names defined_names(const ir::Block& block);

// The op with other names, in all its fields, expressions and blocks.
ir::Op rename_names(const ir::Op& op, const Renaming& renaming, expr::ExprPool& pool);

}  // namespace nautilus::matile

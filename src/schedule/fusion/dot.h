// SPDX-License-Identifier: Apache-2.0
// Which axis of a fusion is the row of its contractions, and which of its reductions are products
// of matrices along it.
#pragma once

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// Sets the fusion's row axis and its dots. `row`: the axis asked for, or null. Returns the
// statements of members that compute second operands: products need these operands in memory.
std::vector<int> find_dots(Fusion& fusion, const ir::Program& program, Expr row,
                           expr::ExprPool& pool);

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
// Rows of a tile that share an operand in blocks, as queries of a group share the keys of one head:
// `K[row / n, ...]`. Tests: test/schedule (group.naut and others)
#pragma once

#include "expr/bounds/bounds.h"
#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// The divisor in the fusion's one use of `row / n`; null if there is none or several, if the extent
// is not a multiple, or if a block may have more rows than a tile.
Expr row_block(const Fusion& fusion, Expr row, expr::Facts& facts, expr::ExprPool& pool);

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
// The steps of a loop in which its masks are true everywhere.
#pragma once

#include <vector>

#include "vrtile/ops.h"

namespace nautilus::vrtile {

// Where conjuncts of the loop's conditions hold at every point of their tiles.
struct LiveRange {
  std::vector<ir::Expr> from;     // var >= each of these
  std::vector<ir::Expr> to;       // var <= each of these
  std::vector<ir::Expr> holding;  // the conjuncts that then hold
};

LiveRange live_range(const For& loop, expr::ExprPool& pool);

}  // namespace nautilus::vrtile

// SPDX-License-Identifier: Apache-2.0
// How many points, tiles or CTAs there are, as expressions of sizes.
#pragma once

#include "ir/op.h"

namespace nautilus::lower {

// n / by, rounded up.
expr::Expr quotient_up(expr::Expr n, int64_t by, expr::ExprPool& pool);

// The points of the axes.
expr::Expr count_of(const ir::Axes& axes, expr::ExprPool& pool);

}  // namespace nautilus::lower

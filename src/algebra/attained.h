// SPDX-License-Identifier: Apache-2.0
// Terms that count only where an extreme value is attained.
//
//   best = max x[j]
//   near = min where(x[j] == best, f32(j), inf)
//   O    = sum where(x[j] == best, 1.0, 0.0) * V[j]
//
// Where the extreme moves, no earlier element attains it, so the result so far is forgotten; where
// it stays, the result stays. The payload of the terms does not matter. Exactness class: exact.
#pragma once

#include <functional>
#include <vector>

#include "expr/walk.h"

namespace nautilus::algebra {

struct AttainedTerms {
  expr::Expr term;                   // without the conditions
  std::vector<expr::Expr> extremes;  // the extremes in the conditions
};

// `is_extreme_of(m, x)`: m is the running maximum (`is_maximum`) or minimum of x. A condition is
// removed if its other branch is the identity of the reduction, alone or as a factor of a sum.
AttainedTerms without_attained(
    expr::ExprPool& pool, expr::Expr term, expr::Reducer reducer,
    const std::function<bool(expr::Expr m, expr::Expr x, bool is_maximum)>& is_extreme_of);

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
// What a reduction gets from columns beyond the row, which read a padding: where the term is then
// the reducer's identity, no condition is needed.
//
//   sum[j] exp(X[i, j] - m[i])    with X read as -inf, and m[i] never -inf:  exp(-inf) = 0
//   max[j] X[i, j]                with X read as -inf:  -inf
//   sum[j] X[i, j] * X[i, j]      with X read as 0:  0
#pragma once

#include <functional>

#include "expr/expr.h"

namespace nautilus::lower {

// `element`: the value of a read that is computed again, null for others. `is_padded`: the read
// gives the padding. `number`: the value of a number of the row that a read means, or null.
bool is_identity_outside(expr::Expr value, expr::Reducer reducer, double padding,
                         const std::function<expr::Expr(expr::Expr read)>& element,
                         const std::function<bool(expr::Expr read)>& is_padded,
                         const std::function<expr::Expr(expr::Expr read)>& number);

}  // namespace nautilus::lower

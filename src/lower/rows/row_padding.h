// SPDX-License-Identifier: Apache-2.0
// What a reduction gets from columns beyond the row, which read a padding: where the term is then
// the reducer's identity, no condition is needed.
//
//   sum[j] exp(X[i, j] - m[i])    with X read as -inf, and m[i] never -inf:  exp(-inf) = 0
//   max[j] X[i, j]                with X read as -inf:  -inf
//   sum[j] X[i, j] * X[i, j]      with X read as 0:  0
#pragma once

#include "lower/rows/row_scope.h"

namespace nautilus::lower {

// The padding with which most reductions of the group need no condition.
double choose_padding(const RowScope& scope);
// Whether the terms of a reduction beyond the row are then its identity.
bool vanishes_outside(const RowStatement& s, double padding, const RowScope& scope);

}  // namespace nautilus::lower

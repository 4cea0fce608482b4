// SPDX-License-Identifier: Apache-2.0
// Maxima and minima move inside functions that keep the order.
//
//   let A[i < M] : f32 = max[j < N] exp(S[i, j] - m[i]) / l[i]        (l > 0 by a guard or a fact)
//   let a[i < M] : i64 = argmax[j < N] S[i, j] * 2.0 + c[i]
// becomes
//   let A.max[i < M] : f32 = max[j < N] S[i, j]
//   let A[i < M] : f32 = exp(A.max[i] - m[i]) / l[i]
//   let a[i < M] : i64 = argmax[j < N] S[i, j]
//
// A function that falls swaps maximum and minimum. All that the reduced axis does not change may
// stand around the one operand that it does: sums, products and quotients of known sign,
// exponentials, logarithms, roots, sigmoids, maxima and minima, casts that widen. What depends on
// reductions over the axis (a softmax's) so becomes final behind the loop, and needs no second
// pass. Positions pass functions that rise strictly only. A maximum over nothing, or of NaN alone,
// stays -inf; elements that may be NaN, or infinite at the far end, stay where they are. Reductions
// with an initial element stay. Needs reductions in equations of their own. Exactness class: exact
// over the reals. Test: test/spec/push_extremes.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> push_extremes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

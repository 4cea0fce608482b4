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
// A function that falls swaps maximum and minimum. Only one operand may vary along the reduced
// axis. Around it may be sums, products and quotients of known sign, exponentials, logarithms,
// roots, sigmoids, maxima and minima, casts that widen. So a value that depends on reductions over
// the axis (a softmax's) is computed after the loop and needs no second pass. Positions only move
// through strictly rising functions. An empty maximum, or one of NaN alone, stays -inf. Elements
// that may be NaN, or infinite at the far end, are not moved, and neither are reductions with an
// initial element. Needs reductions in equations of their own. Exactness class: exact over the
// reals. Test: test/spec/push_extremes.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> push_extremes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

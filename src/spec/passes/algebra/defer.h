// SPDX-License-Identifier: Apache-2.0
// Factors and divisors without the reduced axis leave a sum.
//
//   let P[i < M, j < N] : f32 = E[i, j] / l[i]
//   let O[i < M, e < 64] : f32 = sum[j < N] P[i, j] * V[j, e]
// becomes
//   let O.acc[i < M, e < 64] : f32 = sum[j < N] E[i, j] * V[j, e]
//   let O[i < M, e < 64] : f32 = O.acc[i, e] / l[i]
//
// A sum of several products, each with factors of its own to lose, becomes several sums, where they
// are matrix products (whose operands may be rounded) or nothing cancels.
// Looks through element-wise equations (which stay for their other readers) and through selects
// whose other branch is 0. Sums with an initial element stay as they are. A sum of no terms is 0,
// whatever the factor: one that may not be finite (a divisor that may be 0) is replaced where the
// axis is empty. Where a condition can hide a whole row, such a factor leaves for a count of the
// terms that are shown; it stays if the count would have all axes of the sum. One that is finite
// but may overflow leaves a sum that is 0 as it is. Factors and guards: spec/facts/factors.h.
// Exactness class: exact over the reals. Test: test/spec/defer.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> defer(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

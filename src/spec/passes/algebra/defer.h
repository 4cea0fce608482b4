// SPDX-License-Identifier: Apache-2.0
// Factors and divisors without the reduced axis leave a sum.
//
//   let P[i < M, j < N] : f32 = E[i, j] / l[i]
//   let O[i < M, e < 64] : f32 = sum[j < N] P[i, j] * V[j, e]
// becomes
//   let O.acc[i < M, e < 64] : f32 = sum[j < N] E[i, j] * V[j, e]
//   let O[i < M, e < 64] : f32 = O.acc[i, e] / l[i]
//
// A sum of several products with different such factors becomes several sums if they are matrix
// products (their operands may be rounded) or if nothing can cancel. Looks through element-wise
// equations (which stay for their other readers) and through selects with 0 as their other branch.
// Sums with an initial element stay unchanged. An empty sum is 0, whatever the factor: a factor
// that may not be finite (a divisor that may be 0) is replaced where the axis is empty. Where a
// condition can hide a whole row, such a factor leaves the sum together with a count of live terms;
// it stays if the count would have all axes of the sum. With a factor that is finite but may
// overflow, a sum that is 0 stays 0. Factors and guards: spec/facts/factors.h. Exactness class:
// exact over the reals. Test: test/spec/defer.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> defer(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

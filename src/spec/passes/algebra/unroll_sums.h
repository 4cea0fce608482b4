// SPDX-License-Identifier: Apache-2.0
// Short axes of a contraction over several axes are unrolled: one contraction over the long axis
// remains for each of their points.
//
//   let Y[i < M, j < N] : f32 = sum[u < 3, k < K] f32(X[i + u, k]) * f32(W[u, k, j])
// becomes
//   let Y[i < M, j < N] : f32 = (sum[k < K] f32(X[i, k]) * f32(W[0, k, j])) + ...
//
// Kernels walk along one axis; sums over several would be scalar code. Only for products with two
// factors that have different axes of the result, and at most four points. Exactness class: exact
// over the reals. Test: test/spec/unroll_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> unroll_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

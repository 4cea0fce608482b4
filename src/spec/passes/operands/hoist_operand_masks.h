// SPDX-License-Identifier: Apache-2.0
// Operands of a sum of products leave the conditions around them.
//
//   let Y[s < S, k < K] : f32 = sum[t < T] where(segment[t] == s, f32(X[t, k]), 0.0)
//   let O[i < M, e < E] : f32 = sum[j < N] where(j <= i, P[i, j] * f32(V[j, e]), 0.0)
// becomes
//   let Y[s < S, k < K] : f32 = sum[t < T] where(segment[t] == s, 1.0, 0.0) * f32(X[t, k])
//   let O[i < M, e < E] : f32 = sum[j < N] where(j <= i, P[i, j], 0.0) * f32(V[j, e])
//
// Both are matrix products then. Only elements of 16-bit inputs leave, which are finite by
// contract. They must be readable without the condition, and they and the rest must each have an
// axis of the result that the other lacks. Exactness class: exact over the reals. Test:
// test/spec/hoist_operand_masks.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> hoist_operand_masks(const ir::Program& program,
                                               ir::PassContext& context);

}  // namespace nautilus::spec

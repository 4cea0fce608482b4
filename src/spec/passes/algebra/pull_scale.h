// SPDX-License-Identifier: Apache-2.0
// Moves positive scalar factors out of sums, maxima, minima and selects, towards the consumers.
//
//   let T[i < M, j < N] : f32 = where(j <= i, S[i, j] * scale, -inf)
//   let m[i < M] : f32 = max[j < N] T[i, j]
//   let E[i < M, j < N] : f32 = exp(T[i, j] - m[i])
// becomes
//   let T[i < M, j < N] : f32 = where(j <= i, S[i, j], -inf)
//   let m[i < M] : f32 = max[j < N] T[i, j]
//   let E[i < M, j < N] : f32 = exp(T[i, j] * scale - m[i] * scale)
//
// A tensor that is not an output keeps its name and loses the factor; readers multiply. The sign
// must be proven, by a constant or a fact. Reductions with an initial element stay unchanged.
// Exactness class: exact over the reals. Test: test/spec/pull_scale.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> pull_scale(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

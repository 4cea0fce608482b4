// SPDX-License-Identifier: Apache-2.0
// Inlines terms of a reduction that are an equation of their own.
//
//   let x[i < M, j < N, d < D] : f32 = X[i, d] - Y[j, d]
//   let s[i < M, j < N] : f32 = sum[d < D] x[i, j, d] * x[i, j, d]
// becomes
//   let s[i < M, j < N] : f32 = sum[d < D] (X[i, d] - Y[j, d]) * (X[i, d] - Y[j, d])
//
// Only element-wise equations that are not outputs and have one reader, which uses every element
// once: nothing is computed twice, and a tensor that may be larger than all others needs no memory.
// Exactness class: exact. Test: test/spec/inline_terms.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> inline_terms(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

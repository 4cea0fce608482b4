// SPDX-License-Identifier: Apache-2.0
// A sum over several axes becomes sums of sums if not all factors of its product have all these
// axes.
//
//   let Y[i < M, l < L] : f32 = sum[j < J, k < K] f32(A[i, j]) * f32(B[j, k]) * f32(C[k, l])
// becomes
//   let Y.inner[i < M, k < K] : f32 = sum[j < J] f32(A[i, j]) * f32(B[j, k])
//   let Y[i < M, l < L] : f32 = sum[k < K] Y.inner[i, k] * f32(C[k, l])
//
// Done where the inner sum lacks some of the axes (fewer products), or is a matrix product and the
// whole sum is not. Needs reductions in equations of their own, so that there is no condition
// around them. Exactness class: exact over the reals. Test: test/spec/nest_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> nest_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Inputs of 8-bit elements that are operands of a matrix product lie as the matrix unit takes them.
//
// Where both operands of all their products have 8 bits and the target has products of such
// elements, they stay; but the axis of the sum must be along memory, and an input that lies
// otherwise is copied with its axes in another order:
//   input A : f8e4m3[M, K]
//   input B : f8e4m3[K, N]
//   let C[i < M, j < N] : f32 = sum[k < K] f32(A[i, k]) * f32(B[k, j])
// becomes
//   let B.f8e4m3[x1 < N, x0 < K] : f8e4m3 = B[x0, x1]
//   let C[i < M, j < N] : f32 = sum[k < K] f32(A[i, k]) * f32(B.f8e4m3[j, k])
//
// The same with integers, whose sums are i32. All other floats are copied to 16 bits, which hold
// every value of 8-bit floats:
//   let K.bf16[x0 < N, x1 < 64] : bf16 = bf16(f32(K[x0, x1]))
//
// The line `store` of a copy asks for one of the other ways. A product of two vectors stays.
// Exactness class: exact, but for how the matrix unit sums products of 8-bit floats, which
// `numerics exact` does not allow. Test: test/spec/byte_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> byte_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

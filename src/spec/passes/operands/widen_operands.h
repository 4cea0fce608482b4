// SPDX-License-Identifier: Apache-2.0
// Inputs of 8-bit floats that are operands of a matrix product are copied to 16 bits first.
//
//   input K : f8e4m3[N, 64]
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(Q[i, d]) * f32(K[j, d])
// becomes
//   input K : f8e4m3[N, 64]
//   let K.bf16[x0 < N, x1 < 64] : bf16 = bf16(f32(K[x0, x1]))
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(Q[i, d]) * f32(K.bf16[j, d])
//
// 16-bit floats hold every value of 8-bit ones, and the emitted instructions have 16-bit operands.
// A product of two vectors stays. Exactness class: exact. Test: test/spec/widen_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> widen_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

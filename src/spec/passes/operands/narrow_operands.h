// SPDX-License-Identifier: Apache-2.0
// Operands of a matrix product that 16 bits hold exactly are rounded to them, which changes no
// number.
//
//   let O[i < M, e < E] : f32 = sum[j < N] P[i, j] * max(f32(V[j, e]), 0.0)
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(i32(Q[i, d])) * f32(i32(K[j, d]))
// become
//   let O[i < M, e < E] : f32 = sum[j < N] P[i, j] * f32(bf16(max(f32(V[j, e]), 0.0)))
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(bf16(f32(i32(Q[i, d])))) * f32(bf16(...))
//
// Matrix instructions have 16-bit operands, so store_operands then makes tensors of them. An
// integer stays if 16 bits do not hold the other operand: only a float stored in 16 bits licenses
// rounding that operand. A mask of constants stays, too: the kernel computes it. Exactness class:
// exact. Test: test/spec/narrow_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> narrow_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

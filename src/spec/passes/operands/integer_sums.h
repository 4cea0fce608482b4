// SPDX-License-Identifier: Apache-2.0
// Sums of products of 8-bit integers that are written in f32 are computed in i32, where they cannot
// leave it: the matrix unit has such products, and the sum is exact.
//
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(i32(Q[i, d])) * f32(i32(K[j, d]))
// becomes
//   let S.i32[i < M, j < N] : i32 = sum[d < 64] i32(Q[i, d]) * i32(K[j, d])
//   let S[i < M, j < N] : f32 = f32(S.i32[i, j])
//
// Requires a target with products of integers, operands at plain axes that lie along the sum or are
// inputs, which are transposed (byte_operands), and a sum of known length; others get 16 bits
// (narrow_operands). Exactness class: as f32. Test: test/spec/integer_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> integer_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

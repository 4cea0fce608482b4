// SPDX-License-Identifier: Apache-2.0
// Intermediate tensors that hold 16-bit numbers are stored in 16 bits.
//
//   let q[i < M, d < 64] : f32 = f32(bf16(x[i, d] * c[d]))
//   let S[i < M, j < N] : f32 = sum[d < 64] q[i, d] * f32(K[j, d])
// becomes
//   let q[i < M, d < 64] : bf16 = bf16(x[i, d] * c[d])
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(q[i, d]) * f32(K[j, d])
//
// So does an operand that 16 bits hold exactly without being rounded, `max(f32(V[j, e]), 0.0)`
// (algebra/exact_halves.h). A matrix instruction can read such a tensor directly. An operand of
// products of integers, `i32(i8(x))`, is stored in 8 bits where the target has such products.
// Exactness class: exact. Test: test/spec/store_narrow.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> store_narrow(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

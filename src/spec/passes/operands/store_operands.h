// SPDX-License-Identifier: Apache-2.0
// Operands of a matrix product that are computed and rounded to 16 bits become tensors.
//
//   let S[i < M, j < N] : f32 = sum[d < 64] g(Q[i, d]) * f32(bf16(g(K[j, d])))
// becomes
//   let S.operand[j < N, d < 64] : bf16 = bf16(g(K[j, d]))
//   let S[i < M, j < N] : f32 = sum[d < 64] g(Q[i, d]) * f32(S.operand[j, d])
//
// Matrix instructions read their second operand from memory; which operand is the second depends on
// the rest of the kernel. The kernel computes the first one like any element-wise equation. The
// axes of a stored operand are in the memory order of a tensor that it reads. An operand stays if
// its reads are inside their tensors only where the result has elements. Exactness class: exact.
// Test: test/spec/store_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> store_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

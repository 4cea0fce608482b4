// SPDX-License-Identifier: Apache-2.0
// Operands of matrix products that no box can bring as they lie are copied to where one can: those
// that are found through other tensors, with steps other than one, with another axis along memory,
// or under a condition. One that is shifted or packed along memory is copied as a whole, so that
// another dimension lies there: no element is copied more than once. An operand that is rounded
// element by element from something else, and for products alone, is computed there.
//
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(Q[i, d]) * f32(K[page[j / 16], j % 16, d])
// becomes
//   let K.gathered[j < N, d < 64] : bf16 = K[page[j / 16], j % 16, d]
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(Q[i, d]) * f32(K.gathered[j, d])
//
// Needs reductions in equations of their own, so that no condition stands around them. The operand
// must lack an axis of the result: its elements are used again. Not part of the usual sequence:
// scheduling asks for it where it gives more kernels. Exactness class: exact. Test:
// test/spec/gather_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> gather_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

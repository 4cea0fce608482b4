// SPDX-License-Identifier: Apache-2.0
// Copies operands of matrix products that no box can load into a layout that boxes can load:
// operands that are indexed by other tensors, have steps other than one, another contiguous axis,
// or a condition. An operand that is shifted or packed along memory is copied as a whole with
// another contiguous dimension, so that no element is copied more than once. If the operand is a
// tensor that only products read and that rounds other values element by element, the copy computes
// it.
//
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(Q[i, d]) * f32(K[page[j / 16], j % 16, d])
// becomes
//   let K.gathered[j < N, d < 64] : bf16 = K[page[j / 16], j % 16, d]
//   let S[i < M, j < N] : f32 = sum[d < 64] f32(Q[i, d]) * f32(K.gathered[j, d])
//
// Needs reductions in equations of their own, so that there is no condition around them. The
// operand must lack an axis of the result: its elements are used several times. Not part of the
// usual sequence: scheduling asks for it where it makes more kernels possible. Exactness class:
// exact. Test: test/spec/gather_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> gather_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Operands of f32 products become sums of three bf16 numbers, their limbs. Products of operands
// become sums of products of limbs, which matrix instructions compute.
//
//   let C[i < M, j < N] : f32 = sum[k < K] A[i, k] * B[k, j]
// becomes
//   let A.high[i < M, k < K] : bf16 = bf16(A[i, k])
//   let A.middle[i < M, k < K] : bf16 = bf16(A[i, k] - f32(bf16(A[i, k])))
//   let A.low[i < M, k < K] : bf16 = the rest of A[i, k] after both
//   ..
//   let C[i < M, j < N] : f32 = sum[k < K] f32(A.low[i, k]) * f32(B.high[k, j])
//       + f32(A.high[i, k]) * f32(B.low[k, j]) + f32(A.middle[i, k]) * f32(B.middle[k, j])
//       + f32(A.middle[i, k]) * f32(B.high[k, j]) + f32(A.high[i, k]) * f32(B.middle[k, j])
//       + f32(A.high[i, k]) * f32(B.high[k, j])
//
// Three limbs have all 24 bits of an f32 number down to 2^-110; the three products that are left
// out are smaller than a product's rounding. Small products come first: the matrix unit truncates
// terms that are small relative to the sum. An operand that bf16 holds exactly is one limb. A
// number that is not finite is in the last limb, and the first limb is then 1 or -1, so that limbs
// add no product of an infinity and 0: results are those of f32.
//
// `numerics tf32` needs 11 bits of an operand, which two limbs have (three products), `numerics
// bf16` one limb. With one, an operand that reductions give at plain places stays if the other one
// becomes a limb: the contract then allows rounding it where it is computed.
//
// Limbs are made of whole tensors, wherever an element is read, without dimensions of one element;
// those of the rows have a contiguous depth, as matrix instructions need it. A computed operand has
// limbs of its own if it reads tensors at plain axes, so that it is not larger than these tensors.
// Exactness class: as f32 (within the bound of the sum, without a licence); tolerance with such a
// licence. Test: test/spec/split_operands.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> split_operands(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Stores operands that pass through memory in the storage dtype of the other operand.
//
//   for i < M, j < N map                              for i < M, j < N map
//     store Z[i, j] = ...                               store Z[i, j] = ...
//   for i < M, p < P map                              for i < M, j < N map
//     ...                                   becomes     store Z.bf16[i, j] = bf16(Z[i, j])
//       update Y[i, p] sum Z[i, j] * f32(U[j, p])     for i < M, p < P map
//                                                       ...
//                                                         update Y[i, p] sum f32(Z.bf16[i, j]) *
//                                                         ...
//
// The numerics contract licenses the rounding of an operand of a contraction to the other operand's
// storage dtype. Exactness class: needs tolerance; refused under `numerics exact`.
#pragma once

#include "schedule/apply/kernel.h"

namespace nautilus::schedule {

Outcome<ir::Program> round_operand(const ir::Program& program, std::string_view temp,
                                   expr::DType dtype, expr::ExprPool& pool);

// Temporaries that kernels read as an operand, with the dtype of the other operand.
std::map<std::string, expr::DType> operands_to_round(const StatementList& list,
                                                     const std::vector<Kernel>& kernels);

}  // namespace nautilus::schedule

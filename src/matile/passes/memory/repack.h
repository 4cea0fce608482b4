// SPDX-License-Identifier: Apache-2.0
// Gives kernels aligned copies of tensors with other strides or addresses.
//
//   tensor A : bf16[M, K] input              tensor A : bf16[M, K] input
//   map Am[k < K, m < M] = A[m, k] ...       tensor A.packed : bf16[M, (K + 7) / 8 * 8] temp
//   kernel gemm                              map Am[k < K, m < M] = A.packed[m, k] ...
//     ...                                    kernel pack_A
//   launch gemm grid tiles                     points i0 < M, i1 < K
//                                                write A.packed[i0, i1] = A[i0, i1]
//                                            launch pack_A grid ...
//                                            kernel gemm
//                                              ...
//                                            launch gemm grid tiles
//
// The copy engine wants contiguous rows and strides of whole 16 bytes; it stores whole 16 bytes,
// too. Rows of the copy are padded to that, so any tensor works. An output is copied back after the
// launches; a temp tensor is itself padded. In this way the plan serves tensors of any strides with
// the same kernel and two more passes over the tensor (plan/executable.h). As a pass it repacks
// every input and output with a map. Test: test/matile/passes/repack.matile.
#pragma once

#include <set>
#include <string>

#include "ir/pass.h"

namespace nautilus::matile {

// `tensors` are inputs, outputs and temp tensors of the program.
ir::Program repack(const ir::Program& program, const std::set<std::string>& tensors,
                   expr::ExprPool& pool);

std::optional<ir::Program> repack_mapped(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

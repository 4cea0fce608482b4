// SPDX-License-Identifier: Apache-2.0
// Gives kernels aligned copies of tensors that they cannot use as they are.
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
// too. Rows of the copy are padded to that, so any tensor will do. An output is copied back after
// the launches; a temp tensor is padded where it is. This is how the plan serves tensors of any
// strides: the same kernel, two passes over the tensor more (plan/executable.h). As a pass it takes
// every input and output that a map shows. Test: test/matile/passes/repack.matile.
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

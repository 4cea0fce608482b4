// SPDX-License-Identifier: Apache-2.0
// The general path: nests of the scalar level as one kernel of scalar code, a thread for each point
// of their map axes.
//
//   for i < M, j < N map                      kernel C_kernel
//     init C[i, j] = 0.0                        points i < M, j < N
//     for k < K reduce              becomes       value C_acc : f32 = 0.0
//       update C[i, j] sum A[i, k] * B[k, j]      loop k from 0 up K
//                                                   assign C_acc = C_acc + A[i, k] * B[k, j]
//                                                 write C[i, j] = C_acc
//                                             launch C_kernel grid (M * N + 127) / 128
//
// Several nests with the same axes are one kernel if each reads what the others of them write at
// its own point only: the value then stays in the thread. Tests: test/lower/points.scalar
#pragma once

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

// A nest without axes (a result of rank 0) is a list of statements.
struct MapNest {
  ir::Axes axes;
  ir::Block body;
};
// The nest of a top-level op; a statement that stands alone is a nest without axes.
MapNest map_nest(const ir::Op& op);

// Buffers that a nest writes.
std::set<std::string> written_by(const MapNest& nest);

// The statement that a kernel of these nests is named after: the last that is kept.
std::string named_after(const std::vector<MapNest>& nests, const std::set<std::string>& kept);

// Whether `next` may join nests that write `written`, all over axes of the same extents; or
// elements that follow a scan (scan_elements.h). An axis of `next` may count through two axes of
// the others, groups and their places, where it reads `f / n` and `f % n`.
bool can_join(const MapNest& first, const MapNest& next, const std::set<std::string>& written,
              expr::ExprPool& pool);

// A nest whose axes are the first axes of another one's is computed again by each of its points.
// `kept`: buffers that somebody reads after the kernel. Null if the nests contain something that
// scalar code cannot say; then a message was reported.
std::optional<LoweredKernel> lower_points(const std::vector<MapNest>& nests,
                                          const std::set<std::string>& kept,
                                          const std::map<std::string, ir::TensorType>& buffers,
                                          FreshNames& names, const target::Points& choice,
                                          ir::PassContext& context);

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// Element-wise members that tiles compute, and that kernels in front of them compute in less time:
//
//   let A[b, h, i, d] : bf16 = bf16(Q[b, h, i, d % 64] * c[i, d % 64] - ...)    S = A K
//
// A tile loads what no box can bring one element at a time, and waits for it, f32 tensors with
// another axis along memory among them; a member without some axes of the grid is computed again at
// each place of these. Stored in front, it costs bytes and a launch, and a box brings it.
#pragma once

#include <string>
#include <vector>

#include "ir/usual_sizes.h"
#include "schedule/apply/kernel.h"
#include "schedule/fusion/statement.h"

namespace nautilus::schedule {

struct CostlyMember {
  int seed = 0;  // of the kernel that computes it
  int statement = 0;
  std::string why;
};

// For members that are made of inputs without reductions, and are no outputs.
std::vector<CostlyMember> costly_members(const StatementList& list,
                                         const std::vector<Kernel>& kernels,
                                         const ir::UsualSizes& sizes, expr::ExprPool& pool);

}  // namespace nautilus::schedule

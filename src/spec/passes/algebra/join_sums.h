// SPDX-License-Identifier: Apache-2.0
// A sum of products of matrices that a condition chooses is one product, over the axes of both
// sums.
//
//   sum[e < E] where(choice[t] == e, sum[k < K] f32(X[t, k]) * f32(W[e, k, j]), 0.0)
// becomes
//   sum[e < E, k < K] where(choice[t] == e, f32(X[t, k]) * f32(W[e, k, j]), 0.0)
//
// Before, every product passed through memory, and the condition chose among them. Only for
// contractions of 16-bit elements that have every axis of the outer sum, so that none is computed
// more often than before; hoist_operand_masks then moves the condition to one operand. Exactness
// class: exact over the reals. Test: test/spec/join_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> join_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

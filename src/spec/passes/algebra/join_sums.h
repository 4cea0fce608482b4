// SPDX-License-Identifier: Apache-2.0
// A sum of products of matrices that a condition chooses is one product, over the axes of both
// sums.
//
//   sum[e < E] where(choice[t] == e, sum[k < K] f32(X[t, k]) * f32(W[e, k, j]), 0.0)
// becomes
//   sum[e < E, k < K] where(choice[t] == e, f32(X[t, k]) * f32(W[e, k, j]), 0.0)
//
// As it was, every product passed through memory to be chosen from. Only contractions of 16-bit
// elements, whose condition hoist_operand_masks puts to one operand, and which have every axis
// around them: none is computed more often than before. Exactness class: exact over the reals.
// Test: test/spec/join_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> join_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

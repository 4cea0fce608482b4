// SPDX-License-Identifier: Apache-2.0
// Keeps one of several equations that define the same tensor.
//
//   let O.max[i < M] : f32 = max[j < N] S[i, j]
//   let LSE.max[p < M] : f32 = max[q < N] S[p, q]
// becomes one equation; readers of the second read the first. Equations are compared up to the
// names of their axes. Two outputs are both kept. Test: test/spec/merge_equal.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> merge_equal(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

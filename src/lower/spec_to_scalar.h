// SPDX-License-Identifier: Apache-2.0
// Spec to scalar: one loop nest per equation, in the order of the equations; of a scan one loop of
// its steps around the nests of its equations.
//
//   let m[i < M] : f32 = max[j < N] T[i, j]
// becomes
//   for i < M map
//     init m[i] = -inf
//     for j < N reduce
//       update m[i] max T[i, j]
//
// Requires: every reduction is an equation of its own (split_reductions). Test:
// test/lower/spec_to_scalar.spec, test/lower/scans.naut
#pragma once

#include "ir/pass.h"

namespace nautilus::lower {

std::optional<ir::Program> spec_to_scalar(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::lower

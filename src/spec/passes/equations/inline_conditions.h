// SPDX-License-Identifier: Apache-2.0
// Inlines conditions and positions that are equations of their own.
//
//   let keep[i < M, j < N] : bool = j <= i
//   let T[i < M, j < N] : f32 = where(keep[i, j], S[i, j], -inf)
// becomes
//   let T[i < M, j < N] : f32 = where(j <= i, S[i, j], -inf)
//
// Only element-wise equations of integers and bools that are not outputs; integers made of floats
// are data, and stay. Passes then see in the reader what the mask hides, and no tile has to hold
// the mask. Exactness class: exact. Test: test/spec/inline_conditions.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> inline_conditions(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

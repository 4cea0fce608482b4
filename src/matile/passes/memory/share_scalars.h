// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Values that kernels compute only from the call's scalars are computed by the plan, once for a
// launch.
//
//   param scale : f32 = 0.125                        param scale : f32 = 0.125
//   machine sms                                      machine sms
//                                             ->     let scale_once = scale * 1.4426950408889634
//   ... exp2(S[i, j] * (scale * 1.44269...) ...      ... exp2(S[i, j] * scale_once ...
//
// Why: a number of the plan is an operand of an instruction; a computed number needs a register, or
// is computed again in every step of a loop.
//
// Test: test/matile/passes/share_scalars.matile.
std::optional<ir::Program> share_scalars(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::matile

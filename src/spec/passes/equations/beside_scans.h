// SPDX-License-Identifier: Apache-2.0
// Passes that move, join or take apart equations, on programs with scans: they see everything but
// the equations of scans. What a scan gives is an input to them, what it reads an output, which
// they leave as it is; the scans are put back behind what they read.
//
//   let a[t] = exp(g[t])                                input S : f32[T]
//   state S : f32[T] along 0                            let a[t] = exp(g[t])
//   let S[t] = a[t] * where(t >= 1, S[t-1], 0)   as     let Y[t] = S[t] * c
//   let Y[t] = S[t] * c                                 output a
//   output Y                                            output Y
//
// So no pass needs to know what a step is, and none can break one. Not for passes that work on each
// equation by itself (simplify, split_reductions). Test: test/spec/beside_scans.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> beside_scans(const ir::Program& program, ir::PassContext& context,
                                        ir::Pass pass);

// The pass as a function of its own; the same one for programs without scans.
template <ir::Pass kPass>
std::optional<ir::Program> beside(const ir::Program& program, ir::PassContext& context) {
  return beside_scans(program, context, kPass);
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Runs passes that move, join or split equations on programs with scans: they see everything except
// the equations of scans. Results of a scan are inputs to them, and tensors that a scan reads are
// outputs, which they do not change. Afterwards each scan is put back after the equations that it
// reads.
//
//   let a[t] = exp(g[t])                                input S : f32[T]
//   state S : f32[T] along 0                            let a[t] = exp(g[t])
//   let S[t] = a[t] * where(t >= 1, S[t-1], 0)   as     let Y[t] = S[t] * c
//   let Y[t] = S[t] * c                                 output a
//   output Y                                            output Y
//
// So no pass needs to know about steps, and none can break one. Not for passes that work on each
// equation separately (simplify, split_reductions). Test: test/spec/leaving_scans.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> leaving_scans(const ir::Program& program, ir::PassContext& context,
                                         ir::Pass pass);

// The wrapped pass; programs without scans go through the pass itself.
template <ir::Pass kPass>
std::optional<ir::Program> leaving_scans(const ir::Program& program, ir::PassContext& context) {
  return leaving_scans(program, context, kPass);
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Gives every reduction an equation of its own.
//
//   let Y[i < M] : f32 = x[i] / sqrt(sum[k < K] x[k] * x[k])
// becomes
//   let Y.sum : f32 = sum[k < K] x[k] * x[k]        (as `let Y.sum[] : ...`)
//   let Y[i < M] : f32 = x[i] / sqrt(Y.sum[])
//
// Guarantees: a body is free of reductions, or it is one reduction with a body and an initial
// element that are free of them: each equation is one perfect loop nest. The body of a reduction
// under a guard gets the guard's condition if a read in it needs the guard. Test:
// test/spec/split_reductions.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> split_reductions(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

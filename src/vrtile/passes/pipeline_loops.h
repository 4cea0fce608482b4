// SPDX-License-Identifier: Apache-2.0
// Software pipelining: a product that needs another product of the same iteration runs one
// iteration late, together with the first product of the next iteration.
//
//   for n from 7 down 0
//     carry u : f32[64, 64] from u_init next u_next
//     dot s : f32[64, 80] = q, k trans
//     set p[i < 64, j < 80] = bf16(exp2(s[i, j]))
//     dot u_next : f32[64, 64] = p, v onto u
// becomes
//   dot s_1 : f32[64, 80] = q, k_1 trans
//   set p_1[i < 64, j < 80] = bf16(exp2(s_1[i, j]))
//   for n from 6 down 0
//     carry u : f32[64, 64] from u_init next u_next
//     carry p_late : bf16[64, 80] from p_1 next p
//     dot s : f32[64, 80] = q, k trans
//     dot u_next : f32[64, 64] = p_late, v onto u        v of iteration n + 1
//     set p[i < 64, j < 80] = bf16(exp2(s[i, j]))
//   dot u_2 : f32[64, 64] = p_late, v_1 onto u
//
// Every op has a stage (0, or 1 for late ops) and a place in one order. A dependence from x to y
// over d iterations is kept iff stage(y) + d > stage(x), or both are equal and x comes before y.
// Values that a late op needs from stage 0 are carried. Values that stage 0 needs from a late op of
// the previous iteration are computed by the same iteration of the new loop, before their use.
//
// The loop must run at least once. Where that is not known, the loop is changed to run at least
// once if an extra step is shown to change nothing (vrtile/empty_step.h). Otherwise, and without
// such products, the loop stays unchanged.
//
// Test: test/vrtile/pipeline_loops.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> pipeline_loops(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile

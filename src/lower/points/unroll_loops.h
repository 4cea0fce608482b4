// SPDX-License-Identifier: Apache-2.0
// Loops of a kernel of points whose number of turns is not known: how many of them are written one
// after the other, so that their loads are under way together.
//
//   points i < M                          points i < M unroll 16
//     loop k from 0 up K          ->        loop k from 0 up K
//       assign a = a + X[i, k]                assign a = a + X[i, k]
//
// Why: threads that are few wait for each load otherwise. Exact. Tests: test/lower/points.scalar,
// test/schedule/unroll.sched
#pragma once

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

// Whether it has a loop whose turns can be taken together. `over_parts`: it puts parts together.
bool can_unroll(const LoweredKernel& parts, bool over_parts, expr::ExprPool& pool);

// As many turns as make the target's loads under way, if those are four or more; as many as the
// target takes of parts, where the kernel puts parts together. 1: one at a time.
int64_t usual_unroll(const LoweredKernel& parts, bool over_parts, const target::Points& choice,
                     expr::ExprPool& pool);

void set_unroll(LoweredKernel& parts, int64_t turns);

}  // namespace nautilus::lower

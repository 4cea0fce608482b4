// SPDX-License-Identifier: Apache-2.0
// Loops of a kernel of points whose number of turns is not known: how many of them are written one
// after the other, so that their loads are under way together.
//
//   points i < M                          layout
//     loop k from 0 up K          ->        unroll 16
//       assign a = a + X[i, k]            points i < M
//                                           loop k from 0 up K
//                                             assign a = a + X[i, k]
//
// Why: threads that are few wait for each load otherwise. Exact. Tests: test/lower/points.scalar,
// test/schedule/unroll.sched
#pragma once

#include <optional>

#include "ir/pass.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/kernel/point_answers.h"

namespace nautilus::lower {

// Of the loops whose turns can be taken together; nothing if it has none. `over_parts`: it puts
// parts together.
std::optional<TurnFacts> turn_facts(const LoweredKernel& parts, bool over_parts,
                                    expr::ExprPool& pool);

void set_unroll(LoweredKernel& parts, int64_t turns);

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"

namespace nautilus::matile {

// Loops of scalar code over the same range that need nothing of each other become one: what they
// read is asked for at the same time.
//
//   loop s from 0 up parts                        value u : f32 = 0.0
//     assign l = l + L[s]                    ->   loop s from 0 up parts
//   value u : f32 = 0.0                             assign l = l + L[s]
//   loop r from 0 up parts                          assign u = u + U[s]
//     assign u = u + U[r]
//
// Only loops that assign; what stands between them moves in front. Test:
// test/matile/passes/merge_loops.matile.
std::optional<ir::Program> merge_loops(const ir::Program& program, ir::PassContext& context);

// The same for one block of a kernel of scalar code.
ir::Block merged_loops(const ir::Block& block, expr::ExprPool& pool);

}  // namespace nautilus::matile

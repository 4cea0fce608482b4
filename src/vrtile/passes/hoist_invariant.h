// SPDX-License-Identifier: Apache-2.0
// Tiles that are the same in every iteration of a loop are computed once, before it.
//
//   for n from 0 up 4
//     load q[i < 64] = Q[i]
//     ...
// becomes
//   load q[i < 64] = Q[i]
//   for n from 0 up 4
//     ...
//
// Safe for loops that do not run: loads read only where their guards hold. Test:
// test/vrtile/hoist_invariant.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> hoist_invariant(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile

// SPDX-License-Identifier: Apache-2.0
// Removes tiles that no store needs, and everything that only they need: carries that feed only
// themselves, loops that do nothing.
//
//   set a[i < 64] = 0.0
//   set b[i < 64] = 1.0
//   store [i < 64] Y[i] = b[i]
// becomes
//   set b[i < 64] = 1.0
//   store [i < 64] Y[i] = b[i]
//
// Test: test/vrtile/drop_unused_tiles.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> drop_unused_tiles(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile

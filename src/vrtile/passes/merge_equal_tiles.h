// SPDX-License-Identifier: Apache-2.0
// Keeps one of several tiles with the same definition.
//
//   load a[i < 64, k < 64] = A[i, k]
//   load a_1[i < 64, q < 64] = A[i, q]
//   dot u : f32[64, 64] = a_1, b
// becomes
//   load a[i < 64, k < 64] = A[i, k]
//   dot u : f32[64, 64] = a, b
//
// Test: test/vrtile/merge_equal_tiles.vrtile
#pragma once

#include "ir/pass.h"

namespace nautilus::vrtile {

std::optional<ir::Program> merge_equal_tiles(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::vrtile

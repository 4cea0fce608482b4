// SPDX-License-Identifier: Apache-2.0
// Positions along an axis as two floats: the block and the place in it.
#pragma once

#include <cstdint>

namespace nautilus::expr {

// Both numbers are exact as f32 for axes up to 2^36.
inline constexpr int64_t kPositionBlock = 4096;
// Axes up to this length need no blocks: f32 counts exactly up to it.
inline constexpr int64_t kExactPositions = int64_t{1} << 24;

}  // namespace nautilus::expr

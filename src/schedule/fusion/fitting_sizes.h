// SPDX-License-Identifier: Apache-2.0
// Sizes that fit a kernel, by registers, shared memory and the shapes of the matrix instruction.
#pragma once

#include <vector>

#include "schedule/fusion/tiling.h"

namespace nautilus::target {
struct Tiles;
}

namespace nautilus::schedule {

// All sizes that fit. Never empty: the smallest tile is always among them.
std::vector<TileConfig> candidate_sizes(const Fusion& fusion);
// Whether tiles are narrower than usual. Such products wait for memory: longer steps, which bring
// more contiguous bytes of each row, are tried as well.
bool has_few_columns(const TileConfig& sizes, const target::Tiles& tiles);
// Whether any sizes fit registers and shared memory.
bool has_fitting_sizes(const Fusion& fusion);

}  // namespace nautilus::schedule

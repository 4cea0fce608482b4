// SPDX-License-Identifier: Apache-2.0
// Sizes that fit a kernel, by registers, shared memory and the shapes of the matrix instruction.
#pragma once

#include <vector>

#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

// All sizes that fit. Never empty: the smallest tile is always among them.
std::vector<TileConfig> candidate_sizes(const Fusion& fusion);
// Whether any sizes fit registers and shared memory.
bool has_fitting_sizes(const Fusion& fusion);

}  // namespace nautilus::schedule

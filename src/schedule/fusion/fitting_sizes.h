// SPDX-License-Identifier: Apache-2.0
// Sizes that fit a kernel, by registers, shared memory and the shapes of the matrix instruction.
#pragma once

#include <vector>

#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

// All sizes that fit. Never empty: the smallest tile is always among them.
std::vector<Sizes> candidate_sizes(const Group& group);
// Whether any fit by what is known: registers and shared memory.
bool has_fitting_sizes(const Group& group);

}  // namespace nautilus::schedule

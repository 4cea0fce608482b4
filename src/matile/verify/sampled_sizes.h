// SPDX-License-Identifier: Apache-2.0
// Random sizes and scalars with which a program may be called, for rules that are sampled instead
// of proved.
#pragma once

#include <vector>

#include "ir/environment.h"
#include "ir/op.h"

namespace nautilus::matile {

// Calls that the program's facts allow, the first one with its hints if allowed. Deterministic;
// empty if hardly any calls are allowed.
std::vector<ir::Environment> sampled_calls(const ir::Program& program);

}  // namespace nautilus::matile

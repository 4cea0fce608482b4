// SPDX-License-Identifier: Apache-2.0
// Sizes and scalars with which a program may be called, drawn at random, for rules that are tried
// and not proved.
#pragma once

#include <vector>

#include "ir/environment.h"
#include "ir/op.h"

namespace nautilus::matile {

// Calls that the program's facts allow, the first with its hints if they do. Always the same ones;
// none if hardly any are allowed.
std::vector<ir::Environment> sampled_calls(const ir::Program& program);

}  // namespace nautilus::matile

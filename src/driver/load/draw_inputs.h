// SPDX-License-Identifier: Apache-2.0
// Random inputs for an MA-tile program that names no oracle.
#pragma once

#include <optional>
#include <string>

#include "driver/load/load.h"
#include "ir/environment.h"

namespace nautilus::driver {

// `given` completed: sizes from its tensors and the hints, scalars from their defaults, the missing
// inputs at random. Floats are normal; integers may be positions, so they are small enough to index
// every dimension of every tensor. Empty if something was reported, or is in `error`.
std::optional<ir::Environment> draw_inputs(const ir::Program& program, ir::Environment given,
                                           uint64_t seed, int multiprocessors, Unit& unit,
                                           std::string* error);

}  // namespace nautilus::driver

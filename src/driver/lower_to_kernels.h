// SPDX-License-Identifier: Apache-2.0
// From a program of any level to one that runs: the MA-tile program with its kernels and its plan.
#pragma once

#include <optional>

#include "driver/load.h"

namespace nautilus::driver {

// Empty if something was reported. A program of level matile is returned as it is.
std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit);

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// A program compiled to kernels, run in the emulator and held against the reference evaluator.
#pragma once

#include "driver/scheduling.h"

namespace nautilus::driver {

// What differs, or what the emulator objects to; an empty string if all is well. Nothing if a
// diagnostic was reported. `every`: also with each of the kernels that a plan chooses between,
// whatever it costs.
std::optional<std::string> check_kernels(const ir::Program& program, const RunRequest& request,
                                         Unit& unit, bool every = false,
                                         const SplitEdit& edit = {});

}  // namespace nautilus::driver

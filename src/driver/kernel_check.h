// SPDX-License-Identifier: Apache-2.0
// A program compiled to kernels, run in the emulator and held against the reference evaluator.
#pragma once

#include "driver/ladder.h"

namespace nautilus::driver {

// What differs, or what the emulator objects to; an empty string if all is well. Nothing if a
// diagnostic was reported.
std::optional<std::string> check_kernels(const ir::Program& program, const RunRequest& request,
                                         Unit& unit);

}  // namespace nautilus::driver

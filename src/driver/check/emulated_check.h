// SPDX-License-Identifier: Apache-2.0
// A program of level matile, run in the emulator and compared with what it is meant to compute.
#pragma once

#include "driver/oracle/ladder.h"

namespace nautilus::driver {

// As check_against (oracle_check.h), for programs whose kernels can be emitted.
std::optional<std::string> check_emulated(const ir::Program& oracle, const ir::Program& program,
                                          const RunRequest& request, Unit& unit);

}  // namespace nautilus::driver

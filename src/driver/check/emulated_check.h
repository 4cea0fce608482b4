// SPDX-License-Identifier: Apache-2.0
// A program of level matile, run in the emulator and compared with its oracle.
#pragma once

#include "driver/oracle/ladder.h"

namespace nautilus::driver {

// As check_against (oracle_check.h), for programs with kernels that can be emitted.
std::optional<std::string> check_emulated(const ir::Program& oracle, const ir::Program& program,
                                          const RunRequest& request, Unit& unit);

}  // namespace nautilus::driver

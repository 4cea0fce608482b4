// SPDX-License-Identifier: Apache-2.0
// A program of a lower level, run on random inputs and compared with its oracle.
#pragma once

#include "driver/oracle/ladder.h"

namespace nautilus::driver {

// Interprets `program` (scalar or vrtile) with all floats rounded to their dtypes. Returns the
// first output that is not within the bounds of the oracle, as text; empty if all are; nothing if a
// diagnostic was reported.
std::optional<std::string> check_against(const ir::Program& oracle, const ir::Program& program,
                                         const RunRequest& request, Unit& unit);

}  // namespace nautilus::driver

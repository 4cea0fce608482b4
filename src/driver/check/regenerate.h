// SPDX-License-Identifier: Apache-2.0
// Compares a kernel written by hand with the compiler's kernel for the same mathematics.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "driver/load/load.h"

namespace nautilus::driver {

// The MA-tile program of the file names its oracle; that program is lowered with the schedule, and
// the outlines (matile/outline.h) of both are compared. The difference as a unified diff, empty if
// there is none. `kernel`: of several kernels from the schedule, the one to compare; all, if empty.
// Nothing if something was reported or is in `error`.
std::optional<std::string> regeneration_difference(const std::string& path,
                                                   std::string_view schedule,
                                                   std::string_view kernel, Unit& unit,
                                                   std::string* error);

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// From a program of any level to one that runs: the MA-tile program with its kernels and its plan.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "driver/load.h"
#include "ir/environment.h"

namespace nautilus::driver {

// Empty if something was reported. A program of level matile is returned as it is.
std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit);

// The same with the decisions of a schedule's text in place of the first schedule. Here a schedule
// that is not legal, or whose tiles have no kernel, is an error: in `error`, or reported.
std::optional<ir::Program> lower_with_schedule(const ir::Program& program, std::string_view text,
                                               Unit& unit, std::string* error);

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// Kernels of a text that has several schedules, each for sizes of its own
// (schedule/text/sized_schedules.h): one plan with all of them (lower/kernel/plan_by_sizes.h).
#pragma once

#include "driver/kernels/lower_to_kernels.h"
#include "schedule/text/sized_schedules.h"

namespace nautilus::driver {

// The schedules of the text. Checks their lines `at`: every schedule after the first has some, all
// name the same dims of the program, no sizes twice. Nothing, and why, if something is wrong.
std::optional<std::vector<schedule::SizedSchedule>> sized_schedules(const ir::Program& program,
                                                                    std::string_view text,
                                                                    Unit& unit, std::string* error);

// Empty if something was reported, or is in `error`.
std::optional<Kernels> sized_kernels(const ir::Program& program, const KernelRequest& request,
                                     Unit& unit, std::string* error);

// The text with the lines that passes choose by rule in every schedule.
std::optional<std::string> complete_sized(const ir::Program& program, std::string_view text,
                                          Unit& unit, std::string* error);

}  // namespace nautilus::driver

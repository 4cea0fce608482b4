// SPDX-License-Identifier: Apache-2.0
// Whether rules of the compiler fire on a program: passes that change one of the launched kernels,
// and lines of their schedule. Tests of rules use it (`fires=` in docs/testing.md): a rule is
// general if it fires on programs that it was not written for.
#pragma once

#include <string>

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

// Names with commas between them, of passes (`nest_sums`) or of beginnings of lines of a schedule,
// with dots for spaces (`round`, `reference.speculative`).
struct Rules {
  std::string fires;
  std::string quiet;
};

// Empty if all of the first list fire on the program, with its first schedule and these changes,
// and none of the second list does; else what differs. Nothing if something was reported.
std::optional<std::string> firing_difference(const ir::Program& program, const Rules& rules,
                                             const ScheduleEdit& edit, Unit& unit);

}  // namespace nautilus::driver

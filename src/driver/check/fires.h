// SPDX-License-Identifier: Apache-2.0
// Whether rules of the compiler fire on a program: passes that change something on the way of the
// kernels that run, and lines that their schedule has. Tests of rules use it (`fires=` in
// docs/testing.md): a rule is general where it fires on programs that nobody had in mind.
#pragma once

#include <string>

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

// Names with commas between them, of passes (`nest_sums`) or of lines of a schedule as far as they
// matter, with dots for spaces (`round`, `reference.speculative`).
struct Rules {
  std::string fires;
  std::string quiet;
};

// Empty if all of the first fire on the program, with its first schedule and these changes, and
// none of the second does; else what is different. Nothing if something was reported.
std::optional<std::string> firing_difference(const ir::Program& program, const Rules& rules,
                                             const ScheduleEdit& edit, Unit& unit);

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// Schedules that somebody gives for a program: in one file or in several, for all of its kernels or
// for some of them. What no file says is chosen by the rules of the first schedule.
#pragma once

#include "driver/kernels/scheduling.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {

struct GivenSchedule {
  std::string path;    // for messages
  std::string kernel;  // that one of the file alone; empty: all that it has
  std::string text;
};

// Several files as the text of one schedule; a single one for all of its kernels as it is. Nothing,
// and why, if a file is no schedule or lacks its kernel, if two have the same kernel, or if they
// contradict each other about the program.
std::optional<std::string> join_schedules(const std::vector<GivenSchedule>& files,
                                          const ir::Program& program, Unit& unit,
                                          std::string* error);

// A kernel of the schedule that the program has not, with those that it has; empty if there is
// none.
std::string unknown_kernel(const ir::Program& program, const schedule::Schedule& given, Unit& unit);

}  // namespace nautilus::driver

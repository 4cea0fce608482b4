// SPDX-License-Identifier: Apache-2.0
// Schedules that a user gives for a program: in one file or in several, for all of its kernels or
// for some of them. The rules of the first schedule choose the rest.
#pragma once

#include "driver/kernels/scheduling.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {

struct GivenSchedule {
  std::string path;    // for messages
  std::string kernel;  // only this kernel of the file; empty: all of its kernels
  std::string text;
};

// Joins several files into the text of one schedule; a single file for all of its kernels is
// returned unchanged. Nothing, and why, if a file is not a schedule or lacks its kernel, if two
// files have the same kernel, or if they contradict each other about the program.
std::optional<std::string> join_schedules(const std::vector<GivenSchedule>& files,
                                          const ir::Program& program, Unit& unit,
                                          std::string* error);

// A message about a kernel of the schedule that the program does not have, with the program's
// kernels; empty if all exist.
std::string unknown_kernel(const ir::Program& program, const schedule::Schedule& given, Unit& unit);

}  // namespace nautilus::driver

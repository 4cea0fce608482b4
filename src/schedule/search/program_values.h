// SPDX-License-Identifier: Apache-2.0
// Schedules that differ from another in one line about the program: a rewrite of the equations that
// is on or off, an operand that is stored in another way or not at all, another depth. Such a line
// changes which kernels there are, so the lines of kernels and `auto` lines about operands are left
// to the rules again.
#pragma once

#include "schedule/text/schedule.h"

namespace nautilus::schedule {

struct OtherProgram {
  Schedule schedule;
  std::string name;  // the line, for people
};

// Replay decides whether they are legal.
std::vector<OtherProgram> with_other_program_lines(const Schedule& complete);

}  // namespace nautilus::schedule

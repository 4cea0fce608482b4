// SPDX-License-Identifier: Apache-2.0
// Schedules that differ from another in one line about the program: a rewrite of the equations that
// is taken or left, an operand that is stored otherwise or not at all, a depth of its own. Such a
// line changes which kernels there are, so these and whatever rules took about operands are left
// to the rules again.
#pragma once

#include "schedule/text/schedule.h"

namespace nautilus::schedule {

struct OtherProgram {
  Schedule schedule;
  std::string name;  // the line, for people
};

// Whether one is legal is for replay to say.
std::vector<OtherProgram> with_other_program_lines(const Schedule& complete);

}  // namespace nautilus::schedule

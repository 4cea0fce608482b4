// SPDX-License-Identifier: Apache-2.0
// Steps of a search through schedules: one line with another value, of a kernel or about the
// program, or the lines of two schedules
// mixed. Lines that a rule took and that the changed one may have moved are left to the rule again;
// what was tuned or written by a person stays. Whether the result is legal is for replay to say.
#pragma once

#include "base/random.h"
#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {

struct Neighbour {
  Schedule schedule;
  std::string name;        // the line, for people
  std::string kernel;      // that it changes; empty: a line about the program changes all
  size_t alternative = 0;  // of that kernel, from 0
};

// `complete`: with the lines of all its kernels, as schedules are printed.
std::vector<Neighbour> neighbours(const Schedule& complete, const target::Target& target);

// Two schedules of the same kernels: of every kernel and topic the lines of one or of the other.
// Nothing if their kernels are others.
std::optional<Schedule> crossed(const Schedule& a, const Schedule& b, base::Random& random);

}  // namespace nautilus::schedule

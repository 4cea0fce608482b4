// SPDX-License-Identifier: Apache-2.0
// Steps of a search through schedules: one line with another value, of a kernel or about the
// program, or the lines of two schedules mixed. `auto` lines that may depend on the changed line
// are left to the rule again; `tuned` and `user` lines stay. Replay decides whether the result is
// legal.
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

// Mixes two schedules of the same kernels: every kernel and topic has the lines of one or of the
// other. Nothing if their kernels differ.
std::optional<Schedule> crossed(const Schedule& a, const Schedule& b, base::Random& random);

}  // namespace nautilus::schedule

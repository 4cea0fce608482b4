// SPDX-License-Identifier: Apache-2.0
// Which schedule of a problem is best, from trials alone: the same trials give the same winner on
// every machine with the same version of the compiler, in whatever order they come.
//
// Another version of the compiler may make other kernels of a schedule: if a schedule has trials of
// the present version, only these count, else those of all versions together. The schedule with the
// least median leads. Schedules with a lower quartile that is not above that median are considered
// equally fast; of these the one with the fewest `tuned` and `user` lines wins, then the first by
// text. One wrong, failed or hung trial that counts disqualifies.
#pragma once

#include "tune/records/trial.h"

namespace nautilus::tune {

struct Winner {
  std::string schedule;
  double median = 0;
  double low = 0;  // quartiles
  double high = 0;
  size_t samples = 0;
  size_t candidates = 0;  // schedules that were timed
};

// Schedules of one problem that were timed and not disqualified, the least median first. `version`:
// of the present compiler.
std::vector<Winner> standings(const std::vector<Trial>& trials,
                              std::string_view version = NAUTILUS_VERSION);

// Lines of a schedule's text that are `tuned` or `user`.
size_t lines_taken(const std::string& schedule);

// Of trials of one problem; nothing if none was timed.
std::optional<Winner> winner_of(const std::vector<Trial>& trials,
                                std::string_view version = NAUTILUS_VERSION);

}  // namespace nautilus::tune

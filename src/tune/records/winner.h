// SPDX-License-Identifier: Apache-2.0
// Which schedule of a problem is best, from trials alone: the same trials give the same winner on
// every machine with the same version of the compiler, in whatever order they come.
//
// Kernels of a schedule may be others with another version of the compiler: where a schedule has
// trials of the version that asks, only these count, else those of all versions together. The least
// median leads; schedules whose lower quartile is not above it are not told apart from it, and of
// those the one with the fewest lines that a search or a person took wins, then the first by text.
// One wrong, failed or hung trial that counts disqualifies.
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

// Schedules of one problem that were timed and are not out, the least median first. `version`: of
// the compiler that asks.
std::vector<Winner> standings(const std::vector<Trial>& trials,
                              std::string_view version = NAUTILUS_VERSION);

// Lines of a schedule's text that no rule took.
size_t lines_taken(const std::string& schedule);

// Of trials of one problem; nothing if none was timed.
std::optional<Winner> winner_of(const std::vector<Trial>& trials,
                                std::string_view version = NAUTILUS_VERSION);

}  // namespace nautilus::tune

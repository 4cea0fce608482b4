// SPDX-License-Identifier: Apache-2.0
// How long a trial takes on a machine, for what a search would cost before it begins.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/records/trial.h"

namespace nautilus::tune {

// Seconds of a trial where nothing is known: lowered, compiled, checked and timed, 1.4 a second on
// an H200 with 16 cores (bench/log/tuning.md).
inline constexpr double kUsualTrialSeconds = 0.7;

// The mean time between trials of the machine that were made one after another, from their dates.
// Nothing if fewer than eight were. Longer pauses than half a minute are between searches.
std::optional<double> seconds_of_a_trial(const std::vector<Trial>& trials,
                                         const std::string& machine);

}  // namespace nautilus::tune

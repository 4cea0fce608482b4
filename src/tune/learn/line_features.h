// SPDX-License-Identifier: Apache-2.0
// The lines of a schedule as numbers for a learned model. Kernels with the same work and the same
// resources may still differ in their lines (order of reads, moment of loads, chains of sums), and
// only the lines say so.
//
// The columns follow from the vocabulary of decisions: a new decision has columns without further
// work. They are computed from the text of a trial whenever a model learns and are not stored, so
// trials of earlier versions have the columns of the present one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tune/learn/features.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

// What each number is, `ring slots, line 2`.
const std::vector<std::string>& line_feature_names();

// Of the lines about the program and of the alternatives that run. `running` empty: which ones run
// is unknown, and the mean over the alternatives of each kernel counts. All zero for a text that is
// not a schedule of this version.
Features line_features(std::string_view schedule, const Running& running);

// What a model learns from: the features of the kernels, then those of the lines. Empty if the
// features of the kernels are of another version.
Features sample_features(const Features& kernels, std::string_view schedule,
                         const Running& running);

}  // namespace nautilus::tune

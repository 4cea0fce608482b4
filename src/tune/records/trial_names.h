// SPDX-License-Identifier: Apache-2.0
// Trials of programs with the same equations and other names: sizes by the names of this one.
#pragma once

#include <vector>

#include "ir/op.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

// A size is the one at the place that the trial's schedule gives for its name (`names`); a schedule
// that does not say it has the names of this program.
std::vector<Trial> with_names_of(const ir::Program& program, std::vector<Trial> trials);

}  // namespace nautilus::tune

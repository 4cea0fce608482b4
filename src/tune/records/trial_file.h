// SPDX-License-Identifier: Apache-2.0
// Trials of a file in either form: a database, or JSON lines.
#pragma once

#include "tune/records/trial.h"

namespace nautilus::tune {

// The content decides the form, not the name. Nothing, and why with the place, if the file cannot
// be read or a line of it is not a trial.
std::optional<std::vector<Trial>> read_trials(const std::string& path, std::string* error);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// Options of a case (`M=64 seed=2 split=4`) as arguments of its command.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/kernels/scheduling.h"
#include "driver/oracle/ladder.h"

namespace nautilus::driver {

// Sizes, scalars and how inputs are drawn. False, and why, if an option has no such value.
bool read_request(const ir::Program& program, const std::map<std::string, std::string>& options,
                  RunRequest& out, std::string& error);

// `M=1,70 N=33` as the options of several runs: the k-th run has the k-th value of each list, or
// its last. One run without lists.
std::vector<std::map<std::string, std::string>> options_of_runs(
    const std::map<std::string, std::string>& options);

// Changes to the first schedule; their words are removed from the options.
ScheduleEdit taken_schedule_edit(std::map<std::string, std::string>& options);

}  // namespace nautilus::driver

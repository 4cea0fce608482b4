// SPDX-License-Identifier: Apache-2.0
// What trials of a problem say, as one page of HTML: how the search went, how far the best schedule
// is from what the machine could do, which decisions mattered, why schedules were not timed. The
// page needs nothing else: no script, no font, no picture of another place. The same trials give
// the same page.
#pragma once

#include "tune/measure/floor.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

struct ReportInput {
  Problem problem;
  std::string program;        // its name, for people
  std::vector<Trial> trials;  // of the problem; those of one second in the order they were made
  std::optional<Floors> floors = {};
  // Refusals of schedules that never became trials, by cause.
  std::map<std::string, int64_t> not_legal = {};
};

// One part for each problem.
std::string html_page(const std::vector<ReportInput>& problems);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// The trials of a problem as one page of HTML: how the search went, how far the best schedule is
// from the machine's limits, which decisions mattered, why schedules were not timed. The page is
// self-contained: no script, font or picture from elsewhere. The same trials give the same page.
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

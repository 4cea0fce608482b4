// SPDX-License-Identifier: Apache-2.0
// What all parts of a report begin with: trials in order, schedules by their times, the winner and
// what it is compared with.
#pragma once

#include "tune/records/winner.h"
#include "tune/report/report.h"

namespace nautilus::tune {

// How times are written: the unit that suits the winner's.
struct TimeUnit {
  std::string_view name;
  double factor = 1;  // from ms, or from steps
  bool is_whole = false;

  // `0.4123 ms`, `12,084 steps`.
  std::string text(double time) const;
};

struct Findings {
  const ReportInput* input = nullptr;
  std::vector<const Trial*> trials;  // by date
  std::vector<double> seconds;       // of each since the first; empty if a date is none
  std::vector<Winner> standings;     // the fastest first
  std::optional<Winner> winner;
  // The compiler's own choice: the first that was timed without a line of a search or a person.
  std::optional<Winner> choice;
  TimeUnit unit;
  bool is_emulated = false;

  // Of the least time that the floors leave; nothing where they are not known.
  std::optional<double> share_of_roof(double time) const;
};

// The input must outlive what was found.
Findings findings_of(const ReportInput& input);

}  // namespace nautilus::tune

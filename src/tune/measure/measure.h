// SPDX-License-Identifier: Apache-2.0
// One schedule measured in this process: its kernels are made, compared with the definition on
// fresh inputs at the program's own small sizes, then timed at the sizes of the problem. In the
// emulator the time is the number of steps, which is the same on every machine.
#pragma once

#include <set>

#include "driver/load/load.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

// A program at sizes, and how it is measured.
struct Subject {
  std::string path;                        // as messages name it
  std::string text;                        // of the math language
  std::map<std::string, int64_t> sizes;    // statics and dims; the others are the program's hints
  const target::Target* target = nullptr;  // null: the program's own
  bool emulates = false;
  int multiprocessors = 2;  // of the emulator
  int repetitions = 0;      // on a device; 0: 30
  uint64_t seed = 1;        // of inputs
};

// The problem of a subject. Nothing, and why, if its text is not a program or there is no device.
std::optional<Problem> problem_of(const Subject& subject, std::string* error);

// A program of the math language and the names of its sizes.
struct SubjectSizes {
  ir::Program program;
  std::set<std::string> dims;
  std::set<std::string> statics;
};
// Loaded in the unit. Nothing, and why, if its text is not a program of the math language.
std::optional<SubjectSizes> load_sizes(const Subject& subject, driver::Unit& unit,
                                       std::string* error);

// The program with the sizes as its hints, for which schedules are chosen. Nothing if something was
// reported.
std::optional<ir::Program> load(const Subject& subject, driver::Unit& unit);

// A schedule's text; an empty one is the compiler's own choice. For a single schedule; to measure
// several, use a Workbench.
Trial measure(const Subject& subject, const std::string& schedule);

}  // namespace nautilus::tune

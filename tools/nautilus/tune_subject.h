// SPDX-License-Identifier: Apache-2.0
// What tune and propose take alike: a program at sizes, and where it runs.
#pragma once

#include "command.h"
#include "tune/measure/measure.h"

namespace nautilus::tool {

struct SubjectOptions {
  std::string file;
  std::vector<std::string> shape;
  std::string target;
  uint64_t seed = 1;
  bool emulate = false;
  int sms = 2;
  int repetitions = 0;
};

void add_subject_options(CLI::App& command, SubjectOptions& options);

// Prints what went wrong; `exit_code` is set then.
bool read_subject(const SubjectOptions& options, tune::Subject& subject, int& exit_code);

// The options again, for a process that measures the same.
std::vector<std::string> subject_arguments(const SubjectOptions& options);

}  // namespace nautilus::tool

// SPDX-License-Identifier: Apache-2.0
// Trials of one problem in a separate process: a crash, an endless loop or a fatal error of the
// device becomes the verdict of its trial, and the next trial gets a new process.
#pragma once

#include "tune/measure/child.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

class TrialProcess {
 public:
  // `command` answers proposals (`nautilus propose ...`); a trial may take this many seconds.
  TrialProcess(std::vector<std::string> command, Problem problem, double seconds)
      : command_(std::move(command)), problem_(std::move(problem)), seconds_(seconds) {}

  // An empty schedule is the compiler's own choice. Nothing, and why, if the process cannot be
  // started or answers with something else.
  std::optional<Trial> measure(const std::string& schedule, std::string* error);

 private:
  std::vector<std::string> command_;
  Problem problem_;
  double seconds_;
  Child child_;
};

}  // namespace nautilus::tune

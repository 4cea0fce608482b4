// SPDX-License-Identifier: Apache-2.0
// Trials of one problem in a process apart: a crash, a loop or an error that the device does not
// recover from is the verdict of its trial, and the next trial gets another process.
#pragma once

#include "tune/measure/child.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

class TrialProcess {
 public:
  // `command` answers proposals (`nautilus propose ...`); a trial may take so many seconds.
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

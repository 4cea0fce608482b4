// SPDX-License-Identifier: Apache-2.0
// Processes that lower and compile schedules in parallel. They need no device.
#pragma once

#include <memory>

#include "tune/measure/child.h"

namespace nautilus::tune {

class Builders {
 public:
  // `command` answers lines (`nautilus propose`); `seconds`: of one answer, before its process is
  // stopped and replaced.
  Builders(std::vector<std::string> command, int count, double seconds);

  struct Answer {
    std::string line;   // empty if there is none
    std::string error;  // why
  };
  // One for each request, in their order.
  std::vector<Answer> ask(const std::vector<std::string>& requests);

 private:
  Answer ask_one(Child& child, const std::string& request) const;

  std::vector<std::string> command_;
  double seconds_;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace nautilus::tune

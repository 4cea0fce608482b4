// SPDX-License-Identifier: Apache-2.0
// How far a long command is: the command tells its steps, and this says what a reader sees of them.
#pragma once

#include <functional>
#include <string>

namespace nautilus::driver {

struct Step {
  size_t number = 0;  // from 1
  size_t count = 0;
  std::string what;  // steps of one kind have the same words
};
using TellStep = std::function<void(const Step&)>;

// On a terminal one line that changes. Elsewhere plain lines: one for each kind of steps, and one
// every few seconds while it goes on.
class StepText {
 public:
  explicit StepText(bool is_terminal) : is_terminal_(is_terminal) {}

  // What to write at the step; `seconds`: since the command began.
  std::string next(const Step& step, double seconds);
  // What to write behind the last one.
  std::string end() const;

 private:
  bool is_terminal_;
  std::string last_;  // kind of steps
  double told_ = 0;
};

}  // namespace nautilus::driver

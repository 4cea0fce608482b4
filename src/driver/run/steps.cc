// SPDX-License-Identifier: Apache-2.0
#include "driver/run/steps.h"

#include <fmt/format.h>

namespace nautilus::driver {
namespace {

constexpr double kSecondsBetweenLines = 5;
constexpr std::string_view kStartOfLine = "\r\x1b[K";  // which is then empty

}  // namespace

std::string StepText::next(const Step& step, double seconds) {
  const std::string text =
      fmt::format("{:.0f} s  {}: {} of {}", seconds, step.what, step.number, step.count);
  const bool is_new = step.what != last_;
  if (is_terminal_) {
    last_ = step.what;
    return fmt::format("{}{}", kStartOfLine, text);
  }
  if (!is_new && seconds - told_ < kSecondsBetweenLines) return "";
  last_ = step.what;
  told_ = seconds;
  return text + "\n";
}

std::string StepText::end() const {
  return is_terminal_ && !last_.empty() ? std::string(kStartOfLine) : "";
}

}  // namespace nautilus::driver

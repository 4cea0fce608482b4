// SPDX-License-Identifier: Apache-2.0
// The clock, the power and the temperature of a GPU while something runs, as nvidia-smi reports
// them. Read-only.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace nautilus::driver {

class ClockSampler {
 public:
  // Starts nvidia-smi as a child process; without one all answers are empty.
  ClockSampler();
  ~ClockSampler();
  ClockSampler(const ClockSampler&) = delete;
  ClockSampler& operator=(const ClockSampler&) = delete;

  using Time = std::chrono::steady_clock::time_point;
  struct Sample {
    Time time;
    double mhz = 0;
    double watts = 0;
    double celsius = 0;  // 0: not reported
  };
  // Medians of the samples since then.
  std::optional<Sample> since(Time start);

  // A line such as "1755, 540.21, 62"; a board may not report its temperature, "[N/A]".
  static std::optional<Sample> parse(const std::string& line);

 private:
  void read();

  int pid_ = -1;
  int pipe_ = -1;
  std::mutex mutex_;  // of samples_
  std::vector<Sample> samples_;
  std::thread reader_;
};

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// The constants of the target table that small programs can measure, as text.
#pragma once

#include <optional>
#include <string>

#include "driver/run/bench.h"
#include "driver/run/steps.h"
#include "target/target.h"

namespace nautilus::driver {

// A constant as one timed program gives it.
struct Calibration {
  std::string constant;  // a field of target::Target
  double value = 0;
  double in_table = 0;
  std::string how;
};

// From the time of a run, in seconds; pure, so that it can be tested without a device.
double memory_bytes_per_cycle(double bytes, double seconds, const target::Target& target);
double alone_factor(double products, double seconds, const target::Target& target);
double special_slots(double functions, double seconds, const target::Target& target);

// Compiles the programs, runs them and compares with the table; tells which one is next. Empty (and
// why) without a device.
std::optional<std::vector<Calibration>> calibrate(const DeviceOptions& device,
                                                  const target::Target& target,
                                                  const TellStep& tell, std::string* error);

// One line per constant.
std::string to_text(const std::vector<Calibration>& constants, const target::Target& target);

}  // namespace nautilus::driver

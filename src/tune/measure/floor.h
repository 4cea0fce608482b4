// SPDX-License-Identifier: Apache-2.0
// The least time that the machine can take for a program: its bytes at the speed of the memory, its
// products at that of the matrix unit. Work that data decides is counted as if all of it were done
// (driver/run/work_count.h), so a program that skips much of it may be faster.
#pragma once

#include <algorithm>
#include <optional>

#include "tune/measure/measure.h"

namespace nautilus::tune {

// What a program has to do, and what its target can.
struct Floors {
  double flops = 0;  // of products; 0: there are none
  double bytes = 0;  // inputs and outputs once
  double flops_per_second = 0;
  double bytes_per_second = 0;

  double intensity() const { return flops / bytes; }
  // That the machine could do at this intensity.
  double roof() const { return std::min(flops_per_second, intensity() * bytes_per_second); }
  double least_ms() const {
    return 1e3 * std::max(flops / flops_per_second, bytes / bytes_per_second);
  }
};

// Nothing if the subject's text is no program, or a size is open.
std::optional<Floors> floors_of(const Subject& subject);

// In ms; 0 in the emulator, and where sizes are not known.
double floor_of(const Subject& subject);

}  // namespace nautilus::tune

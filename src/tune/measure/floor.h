// SPDX-License-Identifier: Apache-2.0
// The least time that the machine needs for a program: its bytes at the speed of the memory, its
// products at that of the matrix unit. Where a condition on data may skip products
// (driver/run/work_count.h) they do not count for the least time.
#pragma once

#include <algorithm>
#include <optional>

#include "tune/measure/measure.h"

namespace nautilus::tune {

// The work of a program, and the speed of its target.
struct Floors {
  double flops = 0;       // of products; 0: there are none
  double bytes = 0;       // inputs and outputs once
  bool may_skip = false;  // products, by a condition on data
  double flops_per_second = 0;
  double bytes_per_second = 0;

  double intensity() const { return flops / bytes; }
  // The most operations per second at this intensity.
  double roof() const { return std::min(flops_per_second, intensity() * bytes_per_second); }
  double least_ms() const {
    const double products = may_skip ? 0 : flops / flops_per_second;
    return 1e3 * std::max(products, bytes / bytes_per_second);
  }
};

// Nothing if the subject's text is not a program, or a size is unknown.
std::optional<Floors> floors_of(const Subject& subject);

// In ms; 0 in the emulator, and where sizes are not known.
double floor_of(const Subject& subject);

}  // namespace nautilus::tune

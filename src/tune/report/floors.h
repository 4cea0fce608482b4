// SPDX-License-Identifier: Apache-2.0
// The least time that a problem can take, by what it has to do and what its target can: operations
// of products at the speed of the matrix units, bytes of inputs and outputs at that of the memory.
#pragma once

#include <algorithm>
#include <optional>

#include "tune/measure.h"

namespace nautilus::tune {

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

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// What must hold for every schedule of a program: the scheduled program, its tiles and its kernels
// compute what the program says.
#pragma once

#include <string>

#include "sandbox.h"

namespace nautilus::fuzz {

// The first schedule, and variants of it: other tile sizes, statements that are not fused. Each is
// refused with a reason, or right at level scalar and at level vrtile.
Verdict check_schedules(const std::string& text, uint64_t seed);

// The kernels of the first schedule, in the emulator.
Verdict check_cascade_kernels(const std::string& text, uint64_t seed);
// The same on a GPU.
Verdict check_cascade_on_device(const std::string& text, uint64_t seed);

}  // namespace nautilus::fuzz

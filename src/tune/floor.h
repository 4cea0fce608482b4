// SPDX-License-Identifier: Apache-2.0
// The least time that the machine can take for a program: its bytes at the speed of the memory, its
// products at that of the matrix unit. Work that data decides is counted as if all of it were done
// (driver/run/work_count.h), so a program that skips much of it may be faster.
#pragma once

#include "tune/measure.h"

namespace nautilus::tune {

// In ms; 0 in the emulator, and where sizes are not known.
double floor_of(const Subject& subject);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// Which kernels of tiles a program of loops has: those of schedule/choose/auto.h that have a form
// on the device and are predicted to be faster than the same statements in kernels of other forms.
#pragma once

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

// Tried: a kernel that has no form gives up one thing after the other (schedule::Retreat), and at
// last itself.
FirstSchedule with_tile_kernels(const ir::Program& loops, bool is_tried, Unit& unit);

// Of kernels of all forms (choose/program_cost.h).
double predicted_cost(const FirstSchedule& schedule, Unit& unit);

// Scheduling makes programs that verify.
void check_verifies(const ir::Program& scheduled, Unit& unit);

}  // namespace nautilus::driver

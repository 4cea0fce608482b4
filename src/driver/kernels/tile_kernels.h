// SPDX-License-Identifier: Apache-2.0
// The tile kernels of a program of loops: those of schedule/choose/auto.h that have a form on the
// device and are predicted to be faster than kernels of other forms for the same statements.
#pragma once

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

// With trial: a kernel without a form gives up one thing after the other (schedule::Retreat), and
// is dropped at last.
FirstSchedule with_tile_kernels(const ir::Program& loops, bool is_tried, Unit& unit);

// Of kernels of all forms (choose/program_cost.h).
double predicted_cost(const FirstSchedule& schedule, Unit& unit);

// Scheduling makes programs that verify.
void check_verifies(const ir::Program& scheduled, Unit& unit);

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// A program compiled to kernels, run in the emulator or on a device and compared with the reference
// evaluator.
#pragma once

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

enum class RunsOn { Emulator, Device };

struct KernelCheck {
  RunsOn on = RunsOn::Emulator;
  bool every = false;  // each of the kernels that a plan chooses between, whatever its cost
  ScheduleEdit edit;
};

// The difference, or the error of the emulator or the driver; an empty string if there is none.
// Nothing if a diagnostic was reported.
std::optional<std::string> check_kernels(const ir::Program& program, const RunRequest& request,
                                         Unit& unit, const KernelCheck& check = {});

}  // namespace nautilus::driver

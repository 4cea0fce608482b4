// SPDX-License-Identifier: Apache-2.0
// Other kernels for the statements of a program that no tile kernel computes: the forms, groups of
// statements and steps of reductions that choose_kernels compares (choose/choose_kernels.h), each
// as a schedule that can be timed.
#pragma once

#include <functional>
#include <vector>

#include "driver/kernels/scheduling.h"
#include "schedule/choose/sweep.h"

namespace nautilus::driver {

struct KernelForms {
  schedule::Swept swept;
  // The predicted cycles where all sizes are known or were asked for, on a machine that may have
  // other costs; else 0, and if there are tile kernels, too.
  std::function<double(const target::Target&)> cycles_on;
};

// The first one has the kernels of the first schedule; the others follow, the best predicted first.
// Their lines are those that have a prediction, the rest is chosen by rule.
std::vector<KernelForms> kernel_forms(const FirstSchedule& first, Unit& unit);

}  // namespace nautilus::driver

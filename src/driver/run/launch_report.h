// SPDX-License-Identifier: Apache-2.0
// Which kernels a plan launches for given sizes, and why not others.
#pragma once

#include <string>
#include <vector>

#include "ir/environment.h"

namespace nautilus::driver {

struct PlannedLaunch {
  std::string kernel;
  int64_t grid = 0;  // CTAs; 0: it is not launched
  int threads = 0;   // of a CTA; 0 for scalar code
  // Of a launch with alternatives: the values that the plan compares, `attention_cost = 4120`.
  std::vector<std::pair<std::string, int64_t>> reasons;
};

// The environment of a call with the numbers that the plan computes for it.
ir::Environment with_plan_numbers(const ir::Program& kernels, ir::Environment env,
                                  int multiprocessors);

// In the order of the plan. The environment has the sizes and scalars of the call.
std::vector<PlannedLaunch> planned_launches(const ir::Program& kernels, ir::Environment env,
                                            int multiprocessors);

// One line for each kernel that is launched, and one for those that are not.
std::string launch_report(const std::vector<PlannedLaunch>& launches);

}  // namespace nautilus::driver

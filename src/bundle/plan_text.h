// SPDX-License-Identifier: Apache-2.0
// A plan as C: what plan::Frame evaluates for a launch, as functions over prelude/bundle.
// c_expression prints every expression of sizes; tables hold values that are the same for all
// launches.
#pragma once

#include <string>

#include "bundle/bundle.h"

namespace nautilus::bundle {

// The function that runs plan `number` of the program is `plan_name` (a PlanFunction).
std::string plan_name(const Program& program, size_t number);
std::string plan_text(const Program& program, size_t number);

// The caller's tensors, inputs and outputs, as numbers among those of the first plan. Typed
// arguments and tables of the launcher have this order.
std::vector<size_t> arguments_of(const Program& program);

}  // namespace nautilus::bundle

// SPDX-License-Identifier: Apache-2.0
// A schedule as numbers for a learned model: the work (kernel_work.h) and the resources of its
// launched kernels, and the floors of each unit of the target. Amounts are logarithms, so that
// programs and shapes of any size share one scale.
#pragma once

#include <string_view>
#include <vector>

#include "driver/run/launch_report.h"
#include "ir/op.h"
#include "target/target.h"

namespace nautilus::tune {

using Features = std::vector<double>;

// The meaning of each number. Changes with `kFeatures`: lists of another length are of another
// version.
const std::vector<std::string_view>& feature_names();

// Of the launches that are not empty. `env`: the sizes of the problem.
Features features_of(const ir::Program& kernels, const std::vector<driver::PlannedLaunch>& launches,
                     ir::Environment env, int64_t multiprocessors, const target::Target& target);

}  // namespace nautilus::tune

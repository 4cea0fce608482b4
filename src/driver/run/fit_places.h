// SPDX-License-Identifier: Apache-2.0
// The costs of a target that measurements can say something about.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "target/target.h"

namespace nautilus::driver {

struct FitPlace {
  std::string name;  // "costs.special_slots", "nests.row_cycles"
  std::function<double&(target::Target&)> in;
  double most = std::numeric_limits<double>::infinity();  // shares are at most 1
};

std::vector<FitPlace> fit_places();

}  // namespace nautilus::driver

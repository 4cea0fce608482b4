// SPDX-License-Identifier: Apache-2.0
// One kernel that was chosen or asked for: its statements, its sizes and its parts.
#pragma once

#include <set>
#include <vector>

#include "schedule/nest/split.h"

namespace nautilus::schedule {

struct Kernel {
  Fusion fusion;
  TileConfig sizes;
  std::set<int> stored;  // filled when the program is assembled
  // Alternatives for the same fusion; the plan launches the cheapest. Where the first has parts,
  // these have none.
  std::vector<TileConfig> others;
  Split split = {};
};

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
// Names of values that an op of VR-tile reads.
#pragma once

#include <vector>

#include "vrtile/walk.h"

namespace nautilus::lower {

inline std::vector<ir::Name> used_by(const ir::Op& op) {
  std::vector<ir::Name> used;
  vrtile::for_each_use(op, [&](ir::Name n) { used.push_back(n); });
  return used;
}

}  // namespace nautilus::lower

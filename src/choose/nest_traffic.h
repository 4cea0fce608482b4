// SPDX-License-Identifier: Apache-2.0
// What all costs of nests count; a part of nest_cost.h.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "choose/nest_cost.h"

namespace nautilus::choose {

// The bytes that a kernel moves: from memory each tensor once a walk, from the cache every access.
struct NestCosts::Traffic {
  std::map<std::string, double, std::less<>> bytes;  // by tensor
  double cache_bytes = 0;
  double operations = 0;
  double meetings = 0;  // terms of one element, which memory combines one after the other

  void add(std::string_view tensor, double n) {
    double& known = bytes[std::string(tensor)];
    known = std::max(known, n);
  }
  // Once more, for another loop.
  void walk(std::string_view tensor, double n) { bytes[std::string(tensor)] += n; }
};

}  // namespace nautilus::choose

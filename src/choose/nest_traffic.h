// SPDX-License-Identifier: Apache-2.0
// What all costs of nests count; a part of nest_cost.h.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "choose/nest_cost.h"

namespace nautilus::choose {

// What a kernel does. Bytes come from memory once for each walk over a tensor, from the cache with
// every access.
struct NestCosts::Traffic {
  std::map<std::string, double, std::less<>> bytes;  // by tensor
  std::set<std::string, std::less<>> own;            // tensors that the kernel writes
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

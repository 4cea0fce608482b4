// SPDX-License-Identifier: Apache-2.0
// Sizes with weights: what a program is called with, and how often. As JSON lines or as a table:
//
//   {"B": 1, "N": 4096, "weight": 3}          B,N,weight
//   {"B": 8, "N": 1024}                       1,4096,3
//                                             8,1024,1
//
// `count` is another word for `weight`; without one a line weighs 1. Lines with the same sizes are
// one with their weights together, so that a trace of calls can be given as it is. Empty lines and
// those that begin with # say nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nautilus::tune {

struct WeightedSizes {
  std::map<std::string, int64_t> sizes;
  double weight = 1;

  friend bool operator==(const WeightedSizes&, const WeightedSizes&) = default;
};

// In the order of their sizes, each once: what comes of a list does not depend on its order.
std::vector<WeightedSizes> in_order(std::vector<WeightedSizes> list);

// Nothing, and why, with `name` and the number of the line.
std::optional<std::vector<WeightedSizes>> read_shapes(std::string_view text, std::string_view name,
                                                      std::string* error);

}  // namespace nautilus::tune

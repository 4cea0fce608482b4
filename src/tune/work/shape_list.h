// SPDX-License-Identifier: Apache-2.0
// Sizes with weights: what a program is called with, and how often. As JSON lines or as a table:
//
//   {"B": 1, "N": 4096, "weight": 3}          B,N,weight
//   {"B": 8, "N": 1024}                       1,4096,3
//                                             8,1024,1
//
// `count` is another word for `weight`; without one a line weighs 1. The weights of lines with the
// same sizes are added, so that a trace of calls can be used directly. Empty lines and those that
// begin with # are ignored.
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

// Sorted by sizes, each once: results do not depend on the order of a list.
std::vector<WeightedSizes> in_order(std::vector<WeightedSizes> list);

// Nothing, and why, with `name` and the number of the line.
std::optional<std::vector<WeightedSizes>> read_shapes(std::string_view text, std::string_view name,
                                                      std::string* error);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// Layout::register_of for many elements and threads: what each coordinate and each thread adds to
// the owner is computed once and looked up.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "layout/digits.h"

namespace nautilus::layout {

class RegisterTable {
 public:
  explicit RegisterTable(const Layout& layout);

  // The register in which the thread holds the element, if it does. The coordinates lie in the
  // tile.
  std::optional<int> register_of(std::span<const int> coordinates, const Place& thread) const;

 private:
  std::vector<std::vector<Place>> of_axes_;  // by coordinate
  std::vector<int> copies_of_groups_, copies_of_warps_, copies_of_lanes_;
};

}  // namespace nautilus::layout

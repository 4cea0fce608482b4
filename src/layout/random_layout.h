// SPDX-License-Identifier: Apache-2.0
//
// Random layouts for the tests of this folder: a random mixed-radix number for each owner, its
// digits dealt out to the axes and to the copies in random order.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.h"
#include "layout/digits.h"

namespace nautilus::layout {

struct RandomDigits {
  int rank = 0;
  std::vector<Digit> digits;
};

// The radices of an owner are factors of `budget`: 4 for warps, 32 for lanes; registers and warp
// groups are free, so that radices like 3, 5, 7 occur. Lanes are powers of two.
inline RandomDigits random_digits(base::Random& random, int rank, bool with_copies) {
  const auto pick = [&random](int low, int high) {
    return static_cast<int>(random.integer(low, high));
  };
  std::vector<Digit> digits;
  const auto deal = [&](Owner owner, int count, int limit, bool power_of_two) {
    int stride = 1;
    for (int i = 0; i < count; ++i) {
      const int extent = power_of_two ? 1 << pick(0, 2) : pick(1, 5);
      if (stride * extent > limit) break;
      const bool is_copy = rank == 0 || (with_copies && random.chance(0.25));
      if (rank == 0 && !with_copies) break;
      digits.push_back({is_copy ? kCopies : pick(0, rank - 1), extent, 0, owner, stride});
      stride *= extent;
    }
  };
  deal(Owner::Register, pick(0, 4), 60, false);
  deal(Owner::Lane, pick(0, 4), 32, true);
  deal(Owner::Warp, pick(0, 2), 4, true);
  deal(Owner::WarpGroup, pick(0, 1), 3, false);
  // The order within an axis decides the strides there.
  for (size_t i = digits.size(); i > 1; --i) {
    std::swap(digits[i - 1],
              digits[static_cast<size_t>(random.integer(0, static_cast<int>(i) - 1))]);
  }
  std::vector<int> next(static_cast<size_t>(rank), 1);
  for (Digit& digit : digits) {
    if (digit.axis == kCopies) continue;
    int& stride = next[static_cast<size_t>(digit.axis)];
    digit.stride = stride;
    stride *= digit.extent;
  }
  return {rank, std::move(digits)};
}

inline Layout random_layout(base::Random& random, int rank, bool with_copies) {
  RandomDigits made = random_digits(random, rank, with_copies);
  return Layout(made.rank, std::move(made.digits));
}

}  // namespace nautilus::layout

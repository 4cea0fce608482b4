// SPDX-License-Identifier: Apache-2.0
#include "estimate/shared_memory.h"

#include <algorithm>

namespace nautilus::estimate {

int64_t bytes_to_next_tile(int64_t bytes, const target::Copies& copies) {
  return (bytes + copies.tile_alignment - 1) / copies.tile_alignment * copies.tile_alignment;
}

int64_t SharedUse::bytes() const {
  int64_t sum = other_bytes;
  for (const RingUse& r : rings) sum += r.bytes();
  for (const StageUse& s : stages) sum += s.bytes();
  return sum;
}

int64_t bytes_that_keep_apart(int64_t bytes, int64_t resident, const target::Limits& limits) {
  constexpr int64_t kAlignment = 16;
  const int64_t of_one_more = limits.shared_bytes(static_cast<int>(resident) + 1);
  const int64_t too_many = of_one_more / kAlignment * kAlignment + kAlignment;
  return std::max(bytes, std::min<int64_t>(too_many, limits.cta_shared_bytes));
}

}  // namespace nautilus::estimate

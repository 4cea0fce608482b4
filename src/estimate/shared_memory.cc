// SPDX-License-Identifier: Apache-2.0
#include "estimate/shared_memory.h"

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

}  // namespace nautilus::estimate

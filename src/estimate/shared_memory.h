// SPDX-License-Identifier: Apache-2.0
// Shared memory of a kernel: rings of slots that copies fill, staging buffers of results, barriers,
// and buffers for exchanges between warps. Candidates count it from the statements of a fusion
// (schedule/fusion/tile_use.h), role splitting from the tiles of a nest while it chooses slots, and
// the verifier from the declarations of the finished kernel: with the same arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "target/target.h"

namespace nautilus::estimate {

// From the beginning of a tile to the first place after it where another may begin.
int64_t bytes_to_next_tile(int64_t bytes, const target::Copies& copies);

struct RingUse {
  int64_t slot_bytes = 0;  // all slot tiles, each up to the next tile
  int64_t slots = 1;
  int64_t copies = 1;  // one for each group that has a ring of its own

  int64_t bytes() const { return slots * bytes_of_one_more(); }
  int64_t bytes_of_one_more() const { return copies * slot_bytes; }
  // Of a copy: a barrier that a slot is full, and one that it is empty.
  int64_t barrier_bytes() const { return 2 * kBarrierBytes * slots; }

 private:
  static constexpr int64_t kBarrierBytes = 8;
};

struct StageUse {
  int64_t tile_bytes = 0;  // up to the next tile
  int64_t buffers = 1;
  int64_t copies = 1;       // one for each group
  bool is_on_ring = false;  // it reuses the place of an operand and needs no memory

  int64_t bytes() const { return is_on_ring ? 0 : tile_bytes * buffers * copies; }
};

struct SharedUse {
  std::vector<RingUse> rings = {};
  std::vector<StageUse> stages = {};
  int64_t other_bytes = 0;  // barriers, exchanges between warps and groups, numbers of tiles

  int64_t bytes() const;
};

// What a CTA asks for that needs `bytes`, so that no more than `resident` of its kind share a
// multiprocessor.
int64_t bytes_that_keep_apart(int64_t bytes, int64_t resident, const target::Limits& limits);

}  // namespace nautilus::estimate

// SPDX-License-Identifier: Apache-2.0
#include "estimate/shared_memory.h"

#include <gtest/gtest.h>

namespace nautilus::estimate {
namespace {

// Attention by hand: 128 rows and steps of 80, depth 64, two groups.
TEST(SharedMemory, OfAKernelByHand) {
  const target::Copies& copies = target::sm_90a().copies;
  EXPECT_EQ(bytes_to_next_tile(80 * 64 * 2, copies), 10240);
  EXPECT_EQ(bytes_to_next_tile(80 * 48 * 2, copies), 8192);  // 7680
  SharedUse use;
  use.rings = {{8192, 1, 2}, {10240, 3, 1}, {10240, 3, 1}};
  use.stages = {{8192, 1, 2, false}};
  use.other_bytes = 1024;
  EXPECT_EQ(use.bytes(), 16384 + 30720 + 30720 + 16384 + 1024);
  EXPECT_EQ(use.rings[0].bytes_of_one_more(), 16384);
  EXPECT_EQ(use.rings[1].barrier_bytes(), 48);
  use.stages[0].is_on_ring = true;
  EXPECT_EQ(use.bytes(), 16384 + 30720 + 30720 + 1024);
}

TEST(SharedMemory, KeepsCtasApart) {
  const target::Limits& limits = target::sm_90a().limits;
  for (const int64_t resident : {1, 2, 3}) {
    const int64_t bytes = bytes_that_keep_apart(1024, resident, limits);
    const auto fit = limits.sm_shared_bytes / (bytes + limits.kept_shared_bytes);
    EXPECT_EQ(fit, resident) << bytes;
  }
  EXPECT_EQ(bytes_that_keep_apart(200 * 1024, 1, limits), 200 * 1024);
}

}  // namespace
}  // namespace nautilus::estimate

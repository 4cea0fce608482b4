// SPDX-License-Identifier: Apache-2.0
#include "estimate/registers.h"

#include <gtest/gtest.h>

namespace nautilus::estimate {
namespace {

// 128 threads; a tile of 64 rows has two 32-bit values of a column for every four of them.
TEST(Registers, OfTilesByHand) {
  const target::Limits& limits = target::sm_90a().limits;
  EXPECT_EQ(tile_registers(64 * 128, 4, limits), 64);
  EXPECT_EQ(tile_registers(64 * 128, 2, limits), 32);
  EXPECT_EQ(tile_registers(64 * 80, 4, limits), 40);
  EXPECT_EQ(tile_registers(4 * 80, 4, limits), 3);  // 2.5 values of a thread
  EXPECT_EQ(tile_registers(4 * 80, 2, limits), 2);
  EXPECT_EQ(column_registers(128), 32);
}

// The assembler's requirement.
TEST(Registers, OfAnInstruction) {
  const target::Target& t = target::sm_90a();
  EXPECT_EQ(instruction_registers(256, t), 154);
  EXPECT_EQ(instruction_registers(224, t), 138);
  EXPECT_EQ(instruction_registers(208, t), 130);
  // Three groups that compute and one that loads.
  EXPECT_LT(t.limits.registers(512, 1), instruction_registers(208, t));
  EXPECT_GE(t.limits.registers(512, 1), instruction_registers(200, t));
}

// The registers of roles in kernels written by hand, with 24 for each thread that loads.
TEST(Registers, OfRolesByHand) {
  const target::Target& t = target::sm_90a();
  EXPECT_EQ(compute_registers({.groups = 1}, t), 240);
  EXPECT_EQ(compute_registers({.groups = 2}, t), 240);
  EXPECT_EQ(compute_registers({.groups = 3}, t), 160);
  EXPECT_EQ(compute_registers({.groups = 4}, t), 112);
  // 40 for each thread of busy loaders, unless groups need them.
  EXPECT_EQ(compute_registers({.groups = 2, .are_loaders_busy = true}, t), 232);
  EXPECT_EQ(compute_registers({.groups = 3, .are_loaders_busy = true}, t), 160);
  EXPECT_EQ(compute_registers({.groups = 1, .are_loaders_busy = true, .resident = 2}, t), 216);
  EXPECT_EQ(loader_registers({.groups = 2}, 240, t), 24);
  EXPECT_EQ(loader_registers({.groups = 3}, 160, t), 32);
  EXPECT_EQ(loader_registers({.groups = 3}, 128, t), 40);
}

// With any loaders and groups, roles never need more registers than the CTA was launched with.
TEST(Registers, RolesFitTheirPool) {
  for (const target::Target* t : target::targets()) {
    for (int64_t groups = 1; groups <= t->limits.role_groups; ++groups) {
      for (const bool is_busy : {false, true}) {
        for (const int64_t resident : {1, 2}) {
          const Roles roles{groups, true, is_busy, resident};
          if (roles.threads(t->limits) > t->limits.cta_threads) continue;
          const int64_t compute = compute_registers(roles, *t);
          const int64_t load = loader_registers(roles, compute, *t);
          EXPECT_LE(needed_registers(roles, compute, load, t->limits),
                    pool_registers(roles, t->limits))
              << t->name << " " << groups << " groups, " << resident << " CTAs";
        }
      }
    }
  }
}

TEST(Registers, MostThatKeepTheCtas) {
  const target::Limits& limits = target::sm_90a().limits;
  EXPECT_EQ(most_registers(128, 72, limits), 72);    // 7 CTAs
  EXPECT_EQ(most_registers(384, 144, limits), 168);  // one
  for (int64_t n = limits.register_step; n <= 168; n += limits.register_step)
    EXPECT_EQ(ctas_that_fit(384, most_registers(384, n, limits), limits),
              ctas_that_fit(384, n, limits));
}

TEST(Registers, CtasThatFitByHand) {
  const target::Limits& limits = target::sm_90a().limits;
  EXPECT_EQ(ctas_that_fit(128, 40, limits), 12);  // 65536 / (40 * 128) = 12.8
  EXPECT_EQ(ctas_that_fit(128, 33, limits), 12);  // 33 are 40
  EXPECT_EQ(ctas_that_fit(512, 64, limits), 2);
  EXPECT_EQ(ctas_that_fit(512, 24, limits), 4);  // 2048 threads
  EXPECT_EQ(ctas_that_fit(32, 24, limits), 32);
}

}  // namespace
}  // namespace nautilus::estimate

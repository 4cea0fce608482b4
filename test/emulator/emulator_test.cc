// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are right: their results are, for every order in which things may happen.
#include "emulator/emulator.h"

#include <gtest/gtest.h>

#include "test/emulator/attention_kernel.h"
#include "test/emulator/test_kernels.h"

namespace nautilus::emulator {
namespace {

TEST(Emulator, GemmIsExactForRaggedSizes) {
  const auto body = compile_for_test(std::string(kGemm));
  ASSERT_NE(body, nullptr);
  struct Case {
    int m, n, k, grid;
  };
  for (const Case& c : {Case{128, 256, 64, 1},
                        {100, 200, 72, 1},
                        {256, 256, 256, 2},
                        {130, 520, 200, 2},
                        {130, 260, 328, 1}}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const GemmResult result = run_gemm(*body, c.m, c.n, c.k, c.grid, seed);
      EXPECT_EQ(result.report, "");
      EXPECT_EQ(result.wrong, 0) << c.m << " " << c.n << " " << c.k << " seed " << seed;
    }
  }
}

TEST(Emulator, AttentionIsRightForRaggedSizes) {
  const auto body = compile_for_test(std::string(kAttention));
  ASSERT_NE(body, nullptr);
  struct Case {
    int heads, m, n, grid;
  };
  for (const Case& c : {Case{2, 256, 256, 4}, {1, 100, 50, 1}, {3, 200, 330, 2}}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const AttentionResult result = run_attention(*body, c.heads, c.m, c.n, c.grid, seed);
      EXPECT_EQ(result.report, "");
      EXPECT_LT(result.error, 1e-2) << c.m << " " << c.n << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace nautilus::emulator

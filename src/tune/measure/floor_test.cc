// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/floor.h"

#include <gtest/gtest.h>

#include "target/target.h"

namespace nautilus::tune {
namespace {

Subject subject_of(std::string text, std::map<std::string, int64_t> sizes) {
  Subject subject;
  subject.path = "test.naut";
  subject.text = std::move(text);
  subject.sizes = std::move(sizes);
  subject.target = &target::sm_90a();
  subject.emulates = true;
  return subject;
}

constexpr const char* kProduct =
    "dims M, N, K\n"
    "hint M = 96, N = 80, K = 64\n"
    "A: bf16[M, K]\n"
    "B: bf16[K, N]\n"
    "C[i,j] = sum[k] A[i,k] * B[k,j]  -> bf16\n";

TEST(Floors, OfAProduct) {
  const auto f = floors_of(subject_of(kProduct, {{"M", 4096}, {"N", 2048}, {"K", 1024}}));
  ASSERT_TRUE(f);
  EXPECT_DOUBLE_EQ(f->flops, 2.0 * 4096 * 2048 * 1024);
  EXPECT_DOUBLE_EQ(f->bytes, 2.0 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048));
  const target::Target& t = target::sm_90a();
  EXPECT_DOUBLE_EQ(f->bytes_per_second, t.costs.memory_bytes_per_cycle * t.board.clock_ghz * 1e9);
  EXPECT_LT(f->roof(), f->flops_per_second * (1 + 1e-12));
  // The same limit, as a speed and as a time.
  EXPECT_NEAR(f->flops / f->roof() * 1e3, f->least_ms(), 1e-9);
}

TEST(Floors, SmallProductsAreLimitedByMemory) {
  const auto f = floors_of(subject_of(kProduct, {{"M", 4096}, {"N", 8}, {"K", 1024}}));
  ASSERT_TRUE(f);
  EXPECT_DOUBLE_EQ(f->roof(), f->intensity() * f->bytes_per_second);
  EXPECT_DOUBLE_EQ(f->least_ms(), 1e3 * f->bytes / f->bytes_per_second);
}

TEST(Floors, TheEmulatorHasNone) {
  Subject subject = subject_of(kProduct, {});
  EXPECT_EQ(floor_of(subject), 0);
  subject.emulates = false;
  EXPECT_DOUBLE_EQ(floor_of(subject), floors_of(subject)->least_ms());
}

TEST(Floors, OfNoProgramThereAreNone) {
  EXPECT_FALSE(floors_of(subject_of("C[i] = ", {})));
  EXPECT_FALSE(floors_of(subject_of("dims M\nA: f32[M]\nC[i] = A[i]  -> f32\n", {})));
}

}  // namespace
}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
#include "driver/run/work_count.h"

#include <gtest/gtest.h>

namespace nautilus::driver {
namespace {

Work work_of(const char* text, const std::map<std::string, int64_t>& sizes) {
  Unit unit;
  const auto program = load_text("work.naut", text, {}, unit);
  EXPECT_TRUE(program) << (unit.sink.all().empty() ? "" : unit.sink.all()[0].message);
  ir::Environment env;
  for (const auto& [name, size] : sizes) env.sizes.emplace(name, size);
  EXPECT_TRUE(ir::complete(*program, {}, env, unit.sink));
  return count_work(*program, env, unit);
}

TEST(WorkCount, ProductOfMatrices) {
  const Work w = work_of(
      "dims M, N, K\n"
      "A: bf16[M, K]\nB: bf16[K, N]\n"
      "C[i,j] = relu(sum[k] A[i,k] * B[k,j]) -> bf16\n",
      {{"M", 30}, {"N", 50}, {"K", 70}});
  EXPECT_EQ(w.flops, 2.0 * 30 * 50 * 70);
  EXPECT_EQ(w.bytes, 2.0 * (30 * 70 + 70 * 50 + 30 * 50));
}

// Sums of squares and of elements are not products of matrices.
TEST(WorkCount, RowsHaveBytesOnly) {
  const Work w = work_of(
      "dims M, K\n"
      "X: f32[M, K]\n"
      "Y[i,k] = X[i,k] / sqrt(sum[j] X[i,j] * X[i,j])  -> f32\n",
      {{"M", 3}, {"K", 100}});
  EXPECT_EQ(w.flops, 0);
  EXPECT_EQ(w.bytes, 2.0 * 4 * 3 * 100);
}

// Elements that a mask of positions removes are not computed: neither scores nor what their weights
// would be multiplied with. Masks on data are not known.
TEST(WorkCount, MasksOfPositions) {
  const std::string head =
      "dims M\n"
      "hint M = 64\n"
      "Q, K, V: bf16[M, 64]\n"
      "D: i32[M]\n"
      "S[i,j] = sum[d] Q[i,d] * K[j,d]\n";
  const std::string tail =
      "P[i,j] = softmax[j](T[i,j])\n"
      "O[i,e] = sum[j] P[i,j] * V[j,e]  -> bf16\n";
  const double whole = 2 * 2.0 * 512 * 512 * 64;
  const std::string causal = head + "T[i,j] = where(j <= i, S[i,j], -inf)\n" + tail;
  EXPECT_NEAR(work_of(causal.c_str(), {{"M", 512}}).flops / whole, 0.5, 0.02);
  const std::string window = head + "T[i,j] = where(j <= i and j > i - 64, S[i,j], -inf)\n" + tail;
  EXPECT_NEAR(work_of(window.c_str(), {{"M", 512}}).flops / whole, 0.117, 0.02);
  const std::string data = head + "T[i,j] = where(D[i] == D[j], S[i,j], -inf)\n" + tail;
  EXPECT_EQ(work_of(data.c_str(), {{"M", 512}}).flops, whole);
  EXPECT_TRUE(work_of(data.c_str(), {{"M", 512}}).may_skip);
  EXPECT_FALSE(work_of(window.c_str(), {{"M", 512}}).may_skip);
}

}  // namespace
}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// The work of scheduling, counted instead of timed: a program with the same equations n times must
// not need much more than n times the work of one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/kernels/lower_to_kernels.h"

namespace nautilus::driver {
namespace {

// Blocks of a norm, attention and two projections, each of which reads the one before.
std::string stacked(int blocks, bool has_casts) {
  std::string text =
      "dims B, T  static C = 64, F = 128  hint B = 1, T = 80\n"
      "X0: bf16[B, T, C]  scale = 0.125  eps = 1e-6  fact scale > 0, eps > 0\n";
  const std::string cast = has_casts ? "bf16" : "";
  for (int n = 1; n <= blocks; ++n) {
    const bool is_last = n == blocks;
    text += fmt::format(
        "Wq{0}, Wk{0}, Wv{0}: bf16[C, C]  Wu{0}: bf16[C, F]  Wd{0}: bf16[F, C]  g{0}: bf16[C]\n"
        "A{0}[b,t,c] = {2}(rmsnorm[c](X{1}[b,t,c], g{0}[c], eps))\n"
        "Q{0}[b,t,d] = {2}(sum[c] A{0}[b,t,c] * Wq{0}[c,d])\n"
        "K{0}[b,t,d] = {2}(sum[c] A{0}[b,t,c] * Wk{0}[c,d])\n"
        "V{0}[b,t,d] = {2}(sum[c] A{0}[b,t,c] * Wv{0}[c,d])\n"
        "S{0}[b,i,j] = sum[d] Q{0}[b,i,d] * K{0}[b,j,d] * scale\n"
        "P{0}[b,i,j] = softmax[j](where(causal(i, j, 0), S{0}[b,i,j], -inf))\n"
        "R{0}[b,t,d] = {2}(X{1}[b,t,d] + sum[j] P{0}[b,t,j] * V{0}[b,j,d])\n"
        "U{0}[b,t,f] = {2}(gelu(sum[c] R{0}[b,t,c] * Wu{0}[c,f]))\n"
        "X{0}[b,t,c] = {3}(R{0}[b,t,c] + sum[f] U{0}[b,t,f] * Wd{0}[f,c]){4}\n",
        n, n - 1, cast, is_last ? "" : cast, is_last ? " -> bf16" : "");
  }
  return text;
}

struct Work {
  size_t kernels = 0;
  size_t trials = 0;
  size_t fusions = 0;
};

Work work_of(int blocks, bool has_casts) {
  Unit unit;
  const auto program = load_text("blocks.naut", stacked(blocks, has_casts), {}, unit);
  EXPECT_TRUE(program);
  std::string error;
  const auto kernels =
      program ? make_kernels(*program, {.has_notes = true}, unit, &error) : std::nullopt;
  EXPECT_TRUE(kernels) << error;
  if (!kernels) return {};
  return {kernels->notes.size(), unit.trials.count(), unit.memo.fusions.count()};
}

TEST(CompileWork, NestsThatDifferInNamesAreLoweredOnceToTryThem) {
  for (const bool has_casts : {true, false}) {
    const Work one = work_of(2, has_casts);
    const Work more = work_of(4, has_casts);
    EXPECT_GT(more.kernels, one.kernels);
    // The first block reads an input and the last one writes an output; those between are alike.
    EXPECT_LE(more.trials, one.trials * 5 / 3) << (has_casts ? "casts" : "no casts");
  }
}

TEST(CompileWork, FusionsGrowWithTheProgramAndNotWithHowOftenItIsScheduled) {
  for (const bool has_casts : {true, false}) {
    const Work one = work_of(1, has_casts);
    const Work more = work_of(4, has_casts);
    ASSERT_GT(one.fusions, 0u);
    EXPECT_LE(more.fusions, 8 * one.fusions) << (has_casts ? "casts" : "no casts");
  }
}

}  // namespace
}  // namespace nautilus::driver

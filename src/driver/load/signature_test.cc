// SPDX-License-Identifier: Apache-2.0
#include "driver/load/signature.h"

#include <gtest/gtest.h>

#include "diag/render.h"
#include "driver/load/load.h"

namespace nautilus::driver {
namespace {

Signature of_text(const std::string& text) {
  Unit unit;
  const auto program = load_text("a.naut", text, {}, unit);
  EXPECT_TRUE(program) << diag::render_all(unit.sink);
  return program ? signature_of(*program) : Signature();
}

TEST(Signature, InputsComeBeforeOutputs) {
  const Signature s = of_text(
      "dims M\nX: f32[M, 4]\nA[i,j] = X[i,j] * 2  -> f32\nW: f32[M]\n"
      "B[i] = A[i,0] + W[i]  -> bf16\n");
  ASSERT_EQ(s.tensors.size(), 4u);
  EXPECT_EQ(s.tensors[0].name, "X");
  EXPECT_EQ(s.tensors[1].name, "W");
  EXPECT_EQ(s.tensors[2].name, "A");
  EXPECT_TRUE(s.tensors[2].is_output);
  EXPECT_EQ(s.tensors[3].dims, std::vector<std::string>{"M"});
  EXPECT_EQ(s.tensors[3].type.dtype, expr::DType::BF16);
  EXPECT_EQ(s.tensor("W"), 1);
  EXPECT_EQ(s.tensor("Z"), -1);
}

TEST(Signature, OneSizeGivesTheNext) {
  const Signature s = of_text(
      "dims G, H, N, F\nhint F = 3\nfact N >= 1\nfact H >= 1\nQ: f32[H * G, N]\nK: f32[H]\n"
      "O[h, i < F] = Q[h, 0] + K[0]  -> f32\n");
  const auto value = [&](const char* name) { return s.values[static_cast<size_t>(s.value(name))]; };
  EXPECT_EQ(value("H").tensor, 1);
  EXPECT_EQ(value("G").tensor, 0);
  EXPECT_EQ(value("G").dimension, 0);
  EXPECT_EQ(value("N").dimension, 1);
  EXPECT_EQ(value("F").tensor, -1);
  EXPECT_EQ(value("F").hint, 3);
}

// Two unknown factors of one extent determine nothing.
TEST(Signature, AProductAloneDeterminesNothing) {
  const Signature s = of_text("dims G, H\nQ: f32[H * G]\nO[h] = Q[h] * 2  -> f32\n");
  EXPECT_EQ(s.values[0].tensor, -1);
  EXPECT_EQ(s.values[1].tensor, -1);
}

}  // namespace
}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// What sizes a prepared plan finds, and what it says when something does not fit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "driver/run/plan_test_util.h"
#include "expr/tensor.h"

namespace nautilus::driver {
namespace {

// A GEMM's declarations with what a test adds to them.
std::unique_ptr<Loaded> gemm() {
  return load_file(NAUTILUS_SOURCE_DIR "/golden/gemm_pp_128x192.matile");
}

struct Case {
  std::unique_ptr<Loaded> loaded = gemm();
  plan::Prepared plan{*loaded->program, loaded->kernels};
  plan::Frame frame{plan};

  void bind(const char* name, std::vector<int64_t> shape, uint64_t address = 4096) {
    const std::vector<int64_t> strides = expr::strides_of(shape);
    ASSERT_TRUE(frame.bind(plan.tensor(name), {address, shape, strides}));
  }
  // What evaluation or packing says, or how many launches there are.
  std::string result() {
    std::string error;
    if (!frame.evaluate(132, &error) || !frame.pack(kKeep, &error)) return error;
    return fmt::format("{} launches", frame.launches().size());
  }
};

TEST(Plan, SaysWhatDoesNotFit) {
  Case c;
  c.bind("A", {256, 64});
  c.bind("B", {384, 64});
  EXPECT_EQ(c.result(), "tensor `C` is not bound");
  c.bind("C", {256, 384});
  EXPECT_EQ(c.result(), "1 launches");
  c.bind("C", {256, 385});
  EXPECT_EQ(c.result(),
            "dimension 2 of input `C` is N = 384, the values given have shape [256, 385]");
  c.bind("C", {256, 384});
  c.bind("B", {384, 0});
  EXPECT_EQ(c.result(), "dimension 2 of input `B` is K = 64, the values given have shape [384, 0]");
  c.bind("A", {256, 0});
  EXPECT_EQ(c.result(), "the fact `K >= 1` does not hold (K = 0)");
  c.bind("A", {256, 60});
  c.bind("B", {384, 60});
  EXPECT_EQ(
      c.result(),
      "map `Am` of tensor `A`: the stride of dimension 1, 120 bytes, is not a multiple of 16");
  c.bind("A", {256, 64}, 8);
  c.bind("B", {384, 64});
  EXPECT_EQ(c.result(), "map `Am` of tensor `A`: the address, 0x8, is not a multiple of 16");
  // Nothing to do is no error, though an empty tensor has no map.
  c.bind("A", {0, 64});
  c.bind("C", {0, 384});
  EXPECT_EQ(c.result(), "0 launches");
  const std::vector<int64_t> three = {2, 3, 4};
  EXPECT_FALSE(c.frame.bind(c.plan.tensor("A"), {4096, three, three}));
  EXPECT_EQ(c.plan.tensor("D"), -1);
  EXPECT_EQ(c.plan.value("L"), -1);
}

TEST(Plan, NumbersMustFitTheKernels) {
  Case c;
  const int64_t rows = int64_t{1} << 32;
  c.bind("A", {rows, 64});
  c.bind("B", {192, 64});
  c.bind("C", {rows, 192});
  EXPECT_EQ(c.result(), "1 launches");  // 2^25 tiles
  c.bind("A", {rows * 128, 64});
  c.bind("C", {rows * 128, 192});
  EXPECT_EQ(c.result(),
            "map `Am` of tensor `A`: the extent of dimension 1, 549755813888, is not in "
            "1 to 2^32");
}

TEST(Plan, KernelsCountIn32Bits) {
  const auto loaded = load_file(NAUTILUS_SOURCE_DIR "/golden/attention_d128_causal_192x80.matile");
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  plan::Frame frame(plan);
  const auto bind = [&](const char* name, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(frame.bind(plan.tensor(name), {4096, shape, expr::strides_of(shape)}));
  };
  bind("Q", {1, 1, 3000000000, 128});
  bind("K", {1, 1, 16, 128});
  bind("V", {1, 1, 16, 128});
  bind("O", {1, 1, 3000000000, 128});
  bind("next", {1});
  std::string error;
  ASSERT_TRUE(frame.evaluate(132, &error)) << error;
  EXPECT_FALSE(frame.pack(kKeep, &error));
  EXPECT_EQ(error, "`M` is 3000000000, kernels count in 32 bits");
}

TEST(Plan, GridsAreWholeClusters) {
  const auto loaded = load_file(NAUTILUS_SOURCE_DIR "/golden/gemm_pp_128x192_cl2.matile");
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  plan::Frame frame(plan);
  const auto bind = [&](const char* name, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(frame.bind(plan.tensor(name), {4096, shape, expr::strides_of(shape)}));
  };
  bind("A", {1280, 64});
  bind("B", {192, 64});
  bind("C", {1280, 192});
  // Five pairs of tiles.
  for (const auto& [sms, grid] : {std::pair{1, 2}, {2, 2}, {7, 8}, {132, 10}}) {
    std::string error;
    ASSERT_TRUE(frame.evaluate(sms, &error)) << error;
    ASSERT_TRUE(frame.pack(kKeep, &error)) << error;
    EXPECT_EQ(frame.launches()[0].grid, grid) << sms;
  }
}

TEST(Plan, WhatIsSetComesBeforeShapes) {
  Case c;
  c.bind("A", {256, 64});
  c.bind("B", {384, 64});
  c.bind("C", {256, 384});
  c.frame.set(c.plan.value("M"), expr::int_value(128));
  EXPECT_EQ(c.result(),
            "dimension 1 of input `A` is M = 128, the values given have shape [256, 64]");
  c.frame.set(c.plan.value("M"), expr::int_value(-1));
  EXPECT_EQ(c.result(), "size `M` is -1");
}

constexpr const char* kProducts = R"(matile.program @products
  dim H hint 3
  dim G hint 5
  dim M
  param s : f32 = 2.0 * f32(H)
  param n : i32
  tensor Q : f32[H * G, 2 * M + 1] input
  tensor K : f32[H] input
)";

constexpr const char* kViews = R"(matile.program @views
  dim M hint 4
  dim N hint 8
  tensor A : bf16[M * N, 64] input
  let h = 2 * M
  tensor S : f32[h] scratch
  map Am[e < 64, n < N, m < M] = A[N * m + n + 1, e] box 64, 8, 1 promote 64
)";

// A map may start inside its tensor, and its axes may step by sizes of the program.
TEST(Plan, MapsStepBySizes) {
  const auto loaded = load("views.matile", kViews);
  ASSERT_TRUE(loaded->program);
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  ASSERT_EQ(plan.maps.size(), 1U);
  EXPECT_EQ(plan.maps[0].view.l2_promotion, 64);
  plan::Frame frame(plan);
  std::string error;
  ASSERT_TRUE(frame.evaluate(1, &error)) << error;
  EXPECT_EQ(frame.extent(plan.tensor("S"), 0), 8);
  const std::vector<plan::Prepared::Term>& terms = plan.maps[0].terms;
  ASSERT_EQ(terms.size(), 3U);
  for (const plan::Prepared::Term& t : terms) {
    expr::Value stack[8];
    const expr::Value slots[] = {frame.slot(0), frame.slot(1), frame.slot(2)};
    EXPECT_EQ(t.coefficient.run(slots, stack).i, t.axis == 2 ? 8 : 1);
    EXPECT_EQ(t.dimension, t.axis == 0 ? 1 : 0);
  }
  ASSERT_EQ(plan.maps[0].origin.size(), 1U);
}

TEST(Plan, SizesFollowFromProductsOnce) {
  const auto loaded = load("products.matile", kProducts);
  ASSERT_TRUE(loaded->program);
  const plan::Prepared plan(*loaded->program, loaded->kernels);
  const auto bind = [&](plan::Frame& f, const char* name, const std::vector<int64_t>& shape) {
    EXPECT_TRUE(f.bind(plan.tensor(name), {16, shape, shape}));
  };
  const auto value = [&](plan::Frame& f, const char* name) {
    return f.slot(plan.values[static_cast<size_t>(plan.value(name))].slot);
  };
  std::string error;
  plan::Frame frame(plan);
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "size `M` has no value");
  bind(frame, "Q", {12, 9});
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "scalar `n` has no value");
  frame.set(plan.value("n"), expr::int_value(7));
  // Neither H nor G follows from H * G alone: their hints are used and do not fit.
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "dimension 1 of input `Q` is H * G = 15, the values given have shape [12, 9]");
  bind(frame, "K", {4});
  ASSERT_TRUE(frame.evaluate(1, &error)) << error;
  EXPECT_EQ(value(frame, "H").i, 4);
  EXPECT_EQ(value(frame, "G").i, 3);
  EXPECT_EQ(value(frame, "M").i, 4);
  EXPECT_EQ(value(frame, "s").f, 8);
  bind(frame, "Q", {12, 8});
  EXPECT_FALSE(frame.evaluate(1, &error));
  EXPECT_EQ(error, "size `M` has no value");
}

}  // namespace
}  // namespace nautilus::driver

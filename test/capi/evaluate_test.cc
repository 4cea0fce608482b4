// SPDX-License-Identifier: Apache-2.0
// The C interface without a GPU: programs on host memory, errors of arguments, broken invariants.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "program.h"
#include "test/capi/opened.h"

namespace nautilus::capi {
namespace {

TEST(Library, EvaluatorsAgree) {
  const Opened p(kGemm);
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  Host a({24, 32});
  Host b({32, 16});
  std::vector<float> expected(24 * 16);
  for (size_t i = 0; i < 24; ++i)
    for (size_t j = 0; j < 16; ++j)
      for (size_t k = 0; k < 32; ++k)
        expected[i * 16 + j] += 2.0F * a.data[i * 32 + k] * b.data[k * 16 + j];
  nautilus_value alpha = {nautilus_value_index(p.program, "alpha"), 0, 0, 2.0};
  for (const int evaluator :
       {NAUTILUS_EVALUATE_ORACLE, NAUTILUS_EVALUATE_DEFINITION, NAUTILUS_EVALUATE_EMULATOR}) {
#ifndef NAUTILUS_EMULATOR
    if (evaluator == NAUTILUS_EVALUATE_EMULATOR) continue;
#endif
    Host c({24, 16});
    const std::vector<nautilus_tensor> tensors = {a.tensor(), b.tensor(), c.tensor()};
    const std::vector<nautilus_value> values = {alpha};
    const auto kept = arguments(tensors, values);
    nautilus_evaluate_options options = NAUTILUS_EVALUATE_OPTIONS_INIT;
    options.evaluator = evaluator;
    ASSERT_EQ(nautilus_evaluate(p.program, &kept, &options), NAUTILUS_OK) << nautilus_last_error();
    EXPECT_EQ(c.data, expected) << evaluator;
  }
}

TEST(Library, StridesOtherFloatsAndBounds) {
  const Opened p("dims M, N\nX: bf16[M, N]\nY[i,j] = exp(f32(X[i,j]))  -> f32\n");
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  // A transposed view of a tensor in fp32, and a result in fp64 with gaps.
  std::vector<float> x = {0.5F, 1.0F, 1.5F, 2.0F, 2.5F, 3.0F};
  std::vector<double> y(12, -1);
  std::vector<double> bound(6, -1);
  const int64_t shape[] = {3, 2};
  const int64_t x_strides[] = {1, 3};
  const int64_t y_strides[] = {4, 2};
  const std::vector<nautilus_tensor> tensors = {{x.data(), shape, x_strides, 2, NAUTILUS_F32},
                                                {y.data(), shape, y_strides, 2, NAUTILUS_F64}};
  const auto a = arguments(tensors);
  double* bounds[] = {nullptr, bound.data()};
  nautilus_evaluate_options options = NAUTILUS_EVALUATE_OPTIONS_INIT;
  options.bounds = bounds;
  ASSERT_EQ(nautilus_evaluate(p.program, &a, &options), NAUTILUS_OK) << nautilus_last_error();
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_NEAR(y[i * 4 + j * 2], std::exp(x[i + 3 * j]), 1e-5);
      EXPECT_GT(bound[i * 2 + j], 0);
      EXPECT_LT(bound[i * 2 + j], 1e-3);
    }
  }
  EXPECT_EQ(y[1], -1);
  EXPECT_EQ(y[3], -1);
}

TEST(Library, ErrorsOfArgumentsNameTheTensor) {
  const Opened p(kGemm);
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  Host a({24, 32});
  Host b({31, 16});
  Host c({24, 16});
  std::vector<nautilus_tensor> tensors = {a.tensor(), b.tensor(), c.tensor()};
  auto call = arguments(tensors);
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("`B`") || says("`A`")) << nautilus_last_error();
  EXPECT_TRUE(says("31") && says("32")) << nautilus_last_error();

  tensors[1].rank = 1;
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("tensor `B`: bf16[K, N] was expected, f32[31] came")) << nautilus_last_error();

  std::vector<int32_t> integers(32 * 16);
  const int64_t shape[] = {32, 16};
  tensors[1] = {integers.data(), shape, nullptr, 2, NAUTILUS_I32};
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("tensor `B`: bf16[K, N] was expected, i32[32, 16] came"))
      << nautilus_last_error();

  tensors[1].rank = NAUTILUS_ABSENT;
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("nothing came")) << nautilus_last_error();

  call.tensor_count = 2;
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("3 tensors, 2 came")) << nautilus_last_error();

  EXPECT_EQ(nautilus_evaluate(p.program, nullptr, nullptr), NAUTILUS_ERROR_USAGE);
}

TEST(Library, SizesWithoutAValueAreNamed) {
  const Opened p("dims M, N\nX: f32[M]\nY[i,j < N] = X[i]  -> f32\n");
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  nautilus_value_info v = NAUTILUS_VALUE_INFO_INIT;
  const int32_t n = nautilus_value_index(p.program, "N");
  ASSERT_EQ(nautilus_value_at(p.program, n, &v), NAUTILUS_OK);
  EXPECT_EQ(v.bound_tensor, -1);
  EXPECT_EQ(v.has_hint, 0);
  Host x({3});
  const std::vector<nautilus_tensor> tensors = {x.tensor()};
  auto call = arguments(tensors);
  int64_t shape[2] = {};
  EXPECT_EQ(nautilus_shape(p.program, &call, 1, shape), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("size `N` has no value")) << nautilus_last_error();
  const std::vector<nautilus_value> values = {{n, 0, 5, 0}};
  call = arguments(tensors, values);
  ASSERT_EQ(nautilus_shape(p.program, &call, 1, shape), NAUTILUS_OK) << nautilus_last_error();
  EXPECT_EQ(shape[1], 5);
  const std::vector<nautilus_value> negative = {{n, 0, -5, 0}};
  call = arguments(tensors, negative);
  EXPECT_EQ(nautilus_shape(p.program, &call, 1, shape), NAUTILUS_ERROR_ARGUMENT);
  EXPECT_TRUE(says("size `N`: a number from 0 was expected, -5 came")) << nautilus_last_error();
}

TEST(Library, ThreadsShareAProgram) {
  const Opened p(kGemm);
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 1; i < 6; ++i) {
        Host a({i, 8});
        Host b({8, 3});
        Host c({i, 3});
        const std::vector<nautilus_tensor> tensors = {a.tensor(), b.tensor(), c.tensor()};
        const auto call = arguments(tensors);
        int64_t shape[2] = {};
        if (nautilus_evaluate(p.program, &call, nullptr) != NAUTILUS_OK ||
            nautilus_shape(p.program, &call, 2, shape) != NAUTILUS_OK || shape[0] != i)
          errors[t] = nautilus_last_error();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& e : errors) EXPECT_EQ(e, "");
}

// A failed check is an error with its report; the program is lost, others are not.
TEST(Library, ABrokenInvariantDoesNotEndTheProcess) {
  const Opened p(kGemm);
  const Opened other(kGemm);
  ASSERT_EQ(p.status, NAUTILUS_OK) << nautilus_last_error();
  Host a({2, 8});
  Host b({8, 3});
  Host c({2, 3});
  const std::vector<nautilus_tensor> tensors = {a.tensor(), b.tensor(), c.tensor()};
  const auto call = arguments(tensors);
  test_hook = [] { NAUT_CHECK(1 + 1 == 3, "sum is {}", 2); };
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_INTERNAL);
  EXPECT_TRUE(says("internal error: sum is 2")) << nautilus_last_error();
  EXPECT_TRUE(says("while evaluating a program")) << nautilus_last_error();
  nautilus_program* opened = nullptr;
  EXPECT_EQ(nautilus_open_text(kGemm, nullptr, &opened), NAUTILUS_ERROR_INTERNAL);
  EXPECT_EQ(opened, nullptr);
  test_hook = nullptr;
  EXPECT_EQ(nautilus_evaluate(p.program, &call, nullptr), NAUTILUS_ERROR_INTERNAL);
  EXPECT_TRUE(says("is broken since an earlier call")) << nautilus_last_error();
  EXPECT_EQ(nautilus_evaluate(other.program, &call, nullptr), NAUTILUS_OK) << nautilus_last_error();
}

TEST(Library, PreparingNeedsADevice) {
  const Opened p(kGemm);
  nautilus_plan* plan = nullptr;
  const nautilus_status status = nautilus_prepare(p.program, nullptr, &plan);
  if (status == NAUTILUS_OK) {
    nautilus_plan_info info = NAUTILUS_PLAN_INFO_INIT;
    EXPECT_EQ(nautilus_plan_describe(plan, &info), NAUTILUS_OK);
    EXPECT_GT(info.kernels, 0);
  } else {
    EXPECT_EQ(status, NAUTILUS_ERROR_SYSTEM);
    EXPECT_EQ(plan, nullptr);
    EXPECT_STRNE(nautilus_last_error(), "");
  }
  nautilus_plan_close(plan);
}

}  // namespace
}  // namespace nautilus::capi

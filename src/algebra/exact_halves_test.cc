// SPDX-License-Identifier: Apache-2.0
#include "algebra/exact_halves.h"

#include <gtest/gtest.h>

#include "expr/build.h"

namespace nautilus::algebra {
namespace {

class ExactHalvesTest : public ::testing::Test {
 protected:
  expr::Expr element(expr::DType dtype) {
    return pool_.cast(expr::DType::F32, pool_.read(pool_.name("x"), dtype, {}));
  }

  expr::ExprPool pool_;
};

TEST_F(ExactHalvesTest, ConstantsAreHeldIfTheyHaveFewDigits) {
  const auto of = [&](double x) { return exact_halves(pool_.constant(x, expr::DType::F32)); };
  EXPECT_TRUE(of(0).in_bf16 && of(0).in_f16);
  EXPECT_TRUE(of(-1.5).in_bf16 && of(-1.5).in_f16);
  EXPECT_TRUE(!of(1.001953125).in_bf16 && of(1.001953125).in_f16);  // 1 + 2^-9
  EXPECT_TRUE(of(131072).in_bf16 && !of(131072).in_f16);
  EXPECT_FALSE(of(0.1).any());
  EXPECT_FALSE(of(0).is_stored_float);
}

TEST_F(ExactHalvesTest, ElementsAreHeldByWhatTheyAreStoredIn) {
  const ExactHalves bf16 = exact_halves(element(expr::DType::BF16));
  EXPECT_TRUE(bf16.in_bf16 && !bf16.in_f16 && bf16.is_stored_float);
  const ExactHalves i8 = exact_halves(element(expr::DType::I8));
  EXPECT_TRUE(i8.in_bf16 && i8.in_f16 && !i8.is_stored_float);
  EXPECT_FALSE(exact_halves(element(expr::DType::F32)).any());
  EXPECT_FALSE(exact_halves(element(expr::DType::I32)).any());
}

TEST_F(ExactHalvesTest, OperandsOfDifferentTypesHaveNoCommonOne) {
  const expr::Expr bf16 = element(expr::DType::BF16);
  const expr::Expr f16 = element(expr::DType::F16);
  EXPECT_FALSE(exact_halves(pool_.binary(expr::Op::Max, bf16, f16)).any());
  EXPECT_TRUE(exact_halves(pool_.binary(expr::Op::Max, f16, element(expr::DType::I8))).in_f16);
  EXPECT_FALSE(exact_halves(pool_.binary(expr::Op::Add, bf16, bf16)).any());
}

}  // namespace
}  // namespace nautilus::algebra

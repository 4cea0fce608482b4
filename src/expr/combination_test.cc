// SPDX-License-Identifier: Apache-2.0
#include "expr/combination.h"

#include <gtest/gtest.h>

#include "expr/build.h"

namespace nautilus::expr {
namespace {

TEST(Combination, EachReducerCombinesTwoOperands) {
  ExprPool pool;
  const Expr a = pool.var(pool.name("a"), DType::F32);
  const Expr b = pool.var(pool.name("b"), DType::F32);
  const auto most = combination_of(pool.binary(Op::Max, a, b), pool);
  ASSERT_TRUE(most);
  EXPECT_EQ(most->reducer, Reducer::Max);
  EXPECT_EQ(most->operands, (std::array{a, b}));
  EXPECT_FALSE(combination_of(pool.binary(Op::Div, a, b), pool));
  EXPECT_FALSE(combination_of(a, pool));
}

TEST(Combination, ADifferenceAddsTheNegatedOperand) {
  ExprPool pool;
  const Expr a = pool.var(pool.name("a"), DType::F32);
  const Expr b = pool.var(pool.name("b"), DType::F32);
  const auto sum = combination_of(pool.binary(Op::Sub, a, b), pool);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->reducer, Reducer::Sum);
  EXPECT_EQ(sum->operands, (std::array{a, pool.unary(Op::Neg, b)}));
}

}  // namespace
}  // namespace nautilus::expr

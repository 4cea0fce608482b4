// SPDX-License-Identifier: Apache-2.0
#include "algebra/contraction.h"

#include <gtest/gtest.h>

namespace nautilus::algebra {
namespace {

using expr::DType;
using expr::Expr;
using expr::Op;

class ContractionTest : public ::testing::Test {
 protected:
  Expr at(std::string_view name, DType dtype, std::vector<Expr> indices) {
    return pool_.read(pool_.name(name), dtype, indices);
  }
  Expr wide(Expr e) { return pool_.cast(DType::F32, e); }
  Expr times(Expr a, Expr b) { return pool_.binary(Op::Mul, a, b); }

  expr::ExprPool pool_;
  Expr i = pool_.index("i");
  Expr j = pool_.index("j");
  Expr d = pool_.index("d");
  std::vector<Expr> axes = {i, j};
  Expr q = wide(at("Q", DType::BF16, {i, d}));
  Expr k = wide(at("K", DType::BF16, {j, d}));
  Expr w = at("w", DType::F32, {d});
};

TEST_F(ContractionTest, FactorsStandFromLeftToRight) {
  EXPECT_EQ(factors(times(times(q, w), k)), (std::vector<Expr>{q, w, k}));
  EXPECT_EQ(factors(times(q, times(w, k))), (std::vector<Expr>{q, w, k}));
  EXPECT_EQ(factors(q), std::vector<Expr>{q});
  // x^(2^20) shares its parts; as a tree it has a million.
  Expr power = q;
  for (int n = 0; n < 20; ++n) power = times(power, power);
  EXPECT_EQ(factors(power), std::vector<Expr>{power});
}

TEST_F(ContractionTest, OperandsHaveAnAxisEach) {
  EXPECT_TRUE(are_operands(q, k, axes));
  EXPECT_FALSE(are_operands(q, w, axes));
  EXPECT_FALSE(are_operands(q, q, axes));
  EXPECT_TRUE(is_contraction(factors(times(times(q, w), k)), axes));
  EXPECT_FALSE(is_contraction(factors(times(q, w)), axes));
  // Neither a batch axis that both have nor the summed axis is an axis of one operand alone.
  const Expr b = pool_.index("b");
  const std::vector<Expr> batched = {b, i};
  EXPECT_FALSE(are_operands(at("A", DType::F32, {b, i, d}), at("x", DType::F32, {b, d}), batched));
  // Own axes against several: j is in one of the others.
  const std::vector<Expr> others = {w, k};
  EXPECT_TRUE(has_own_axis({&q, 1}, others, axes));
  EXPECT_FALSE(has_own_axis({&k, 1}, {&k, 1}, axes));
}

TEST_F(ContractionTest, ElementsAreReadOrConverted) {
  EXPECT_EQ(element_of(q), q[0]);
  EXPECT_EQ(element_of(w), w);
  EXPECT_FALSE(element_of(times(q, w)));
  EXPECT_TRUE(is_half_element(q));
  EXPECT_FALSE(is_half_element(w));
  EXPECT_FALSE(is_half_element(pool_.cast(DType::BF16, times(q, w))));
}

}  // namespace
}  // namespace nautilus::algebra

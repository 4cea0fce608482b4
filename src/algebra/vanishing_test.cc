// SPDX-License-Identifier: Apache-2.0
#include "algebra/vanishing.h"

#include <gtest/gtest.h>

#include <limits>

#include "expr/expr_test_util.h"

namespace nautilus::algebra {
namespace {

using expr::DType;
using expr::Expr;

class VanishingTest : public ::testing::Test {
 protected:
  Expr parse(std::string_view text) {
    expr::Scope scope;
    scope.add_var("j", DType::I64);
    for (std::string_view n : {"r", "c"}) scope.add_var(n, DType::F32);
    for (std::string_view n : {"x", "y", "v"}) scope.add_tensor(n, DType::F32, 1);
    std::string messages;
    const Expr e = expr::parse_text(std::string(text), scope, pool_, &messages);
    EXPECT_TRUE(e) << text << messages;
    return e;
  }

  // Where x[j] is the infinity of this sign.
  bool vanishes(std::string_view text, int sign) {
    const double at = sign * std::numeric_limits<double>::infinity();
    return vanishes_at(parse(text), {{parse("x[j]"), at}}, Signs());
  }

  expr::ExprPool pool_;
};

TEST_F(VanishingTest, ExponentialsOfWhatIsFarBelow) {
  EXPECT_TRUE(vanishes("exp(x[j] - r)", -1));
  EXPECT_TRUE(vanishes("exp(x[j] - where(r == -inf, 0.0, r))", -1));
  EXPECT_TRUE(vanishes("exp2((x[j] - r) * 1.5)", -1));
  EXPECT_TRUE(vanishes("exp(r - x[j])", 1));
  EXPECT_TRUE(vanishes("exp(-2.0 * x[j])", 1));
  EXPECT_TRUE(vanishes("exp(x[j] - r) * v[j]", -1));
  EXPECT_TRUE(vanishes("v[j] * exp(x[j] - r) / c", -1));
  EXPECT_TRUE(vanishes("exp(x[j] - r) * abs(tanh(v[j]))", -1));
  EXPECT_TRUE(vanishes("exp(x[j] - r) * x[j]", -1));  // 0 * -inf is NaN in any order
  EXPECT_TRUE(vanishes("where(v[j] > 0.0, exp(x[j] - r), 0.0)", -1));
}

TEST_F(VanishingTest, OthersDoNot) {
  EXPECT_FALSE(vanishes("exp(x[j] - r)", 1));
  EXPECT_FALSE(vanishes("exp(y[j] - r)", -1));  // of something else
  EXPECT_FALSE(vanishes("y[j] * exp(-r)", -1));
  EXPECT_FALSE(vanishes("exp((x[j] - r) * c)", -1));  // of either sign
  EXPECT_FALSE(vanishes("exp(x[j] - r) * tanh(x[j])", -1));
  EXPECT_FALSE(vanishes("exp(x[j] - x[j])", -1));
  EXPECT_FALSE(vanishes("exp(x[j] - r) + 1.0", -1));
  EXPECT_FALSE(vanishes("where(v[j] > 0.0, exp(x[j] - r), 1.0)", -1));
  EXPECT_FALSE(vanishes("sin(x[j])", -1));
}

}  // namespace
}  // namespace nautilus::algebra

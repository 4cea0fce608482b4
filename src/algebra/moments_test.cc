// SPDX-License-Identifier: Apache-2.0
#include "algebra/moments.h"

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"
#include "expr/print.h"

namespace nautilus::algebra {
namespace {

using expr::DType;
using expr::Expr;

class MomentsTest : public ::testing::Test {
 protected:
  Expr parse(std::string_view text) {
    expr::Scope scope;
    scope.add_var("j", DType::I64);
    for (std::string_view n : {"r", "q", "T", "T1", "T2", "d", "e"}) scope.add_var(n, DType::F32);
    for (std::string_view n : {"x", "y", "w"}) scope.add_tensor(n, DType::F32, 1);
    std::string messages;
    const Expr e = expr::parse_text(std::string(text), scope, pool_, &messages);
    EXPECT_TRUE(e) << text << messages;
    return e;
  }

  // The derivatives as text, or the code of the refusal.
  std::vector<std::string> moments(std::string_view term) {
    const auto m = moments_of(pool_, parse(term), {parse("r"), parse("q")});
    if (!m) return {m.rejection().code};
    std::vector<std::string> out;
    for (const Moment& each : *m) out.push_back(expr::to_string(each.term));
    return out;
  }

  expr::ExprPool pool_;
};

TEST_F(MomentsTest, DerivativesStayRelativeToTheReference) {
  EXPECT_EQ(moments("(x[j] - r) * (x[j] - r)"),
            (std::vector<std::string>{"(x[j] - r) * (x[j] - r)", "(x[j] - r) * -2.0", "2.0"}));
  EXPECT_EQ(moments("exp(x[j]) * (x[j] - r)").size(), 2u);
  EXPECT_EQ(moments("where(j < 3, (x[j] - r) * w[j], 0.0)"),
            (std::vector<std::string>{"where(j < 3, (x[j] - r) * w[j], 0.0)",
                                      "where(j < 3, w[j] * -1.0, 0.0)"}));
}

TEST_F(MomentsTest, TwoReferencesHaveAMixedDerivative) {
  EXPECT_EQ(moments("(x[j] - r) * (y[j] - q)").size(), 4u);
}

TEST_F(MomentsTest, WhatIsNoPolynomialIsRefused) {
  EXPECT_EQ(moments("exp(x[j] - r)"), std::vector<std::string>{"polynomial"});
  EXPECT_EQ(moments("x[j] / r"), std::vector<std::string>{"polynomial"});
  EXPECT_EQ(moments("where(x[j] < r, 1.0, 0.0)"), std::vector<std::string>{"polynomial"});
  EXPECT_EQ(moments("r * r * r * x[j]"), std::vector<std::string>{"degree"});
}

TEST_F(MomentsTest, SumsMoveByThoseAboveThem) {
  const auto m = moments_of(pool_, parse("(x[j] - r) * (x[j] - r)"), {parse("r")});
  ASSERT_TRUE(m);
  const std::vector<Expr> sums = {parse("T"), parse("T1"), parse("T2")};
  const std::vector<Expr> steps = {parse("d")};
  EXPECT_EQ(moved_sum(pool_, *m, 0, sums, steps), parse("T + d * T1 + d * d * 0.5 * T2"));
  EXPECT_EQ(moved_sum(pool_, *m, 1, sums, steps), parse("T1 + d * T2"));
  EXPECT_EQ(moved_sum(pool_, *m, 2, sums, steps), parse("T2"));
}

}  // namespace
}  // namespace nautilus::algebra

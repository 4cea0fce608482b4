// SPDX-License-Identifier: Apache-2.0
#include "algebra/attained.h"

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"
#include "expr/print.h"

namespace nautilus::algebra {
namespace {

using expr::DType;
using expr::Expr;
using expr::Reducer;

// `m` is the running maximum of x[j], `n` its minimum.
class AttainedTest : public ::testing::Test {
 protected:
  Expr parse(std::string_view text) {
    expr::Scope scope;
    scope.add_var("j", DType::I64);
    for (std::string_view n : {"m", "n"}) scope.add_var(n, DType::F32);
    for (std::string_view n : {"x", "v"}) scope.add_tensor(n, DType::F32, 1);
    std::string messages;
    const Expr e = expr::parse_text(std::string(text), scope, pool_, &messages);
    EXPECT_TRUE(e) << text << messages;
    return e;
  }

  // What is left of the term, and how many extremes it must attain.
  std::string stripped(std::string_view text, Reducer reducer) {
    const auto out =
        without_attained(pool_, parse(text), reducer, [&](Expr m, Expr x, bool is_maximum) {
          return x == parse("x[j]") && m == parse(is_maximum ? "m" : "n");
        });
    return expr::to_string(out.term) + " of " + std::to_string(out.extremes.size());
  }

  expr::ExprPool pool_;
};

TEST_F(AttainedTest, ConditionsLeaveWhereTheOtherBranchIsTheIdentity) {
  EXPECT_EQ(stripped("where(x[j] == m, v[j], inf)", Reducer::Min), "v[j] of 1");
  EXPECT_EQ(stripped("where(x[j] == m, v[j], 0.0)", Reducer::Min),
            "where(x[j] == m, v[j], 0.0) of 0");
  EXPECT_EQ(stripped("where(m == x[j] and j < 3, v[j], -inf)", Reducer::Max),
            "where(j < 3, v[j], -inf) of 1");
}

TEST_F(AttainedTest, FactorsOfASumMayHaveThem) {
  EXPECT_EQ(stripped("where(x[j] == m, 2.0, 0.0) * v[j]", Reducer::Sum), "2.0 * v[j] of 1");
  EXPECT_EQ(stripped("v[j] + where(x[j] == m, 2.0, 0.0)", Reducer::Sum),
            "v[j] + where(x[j] == m, 2.0, 0.0) of 0");
}

TEST_F(AttainedTest, NothingLiesBeyondAnExtreme) {
  EXPECT_EQ(stripped("where(x[j] >= m, v[j], 0.0)", Reducer::Sum), "v[j] of 1");
  EXPECT_EQ(stripped("where(n >= x[j], v[j], 0.0)", Reducer::Sum), "v[j] of 1");
  EXPECT_EQ(stripped("where(x[j] <= m, v[j], 0.0)", Reducer::Sum),
            "where(x[j] <= m, v[j], 0.0) of 0");
  EXPECT_EQ(stripped("where(v[j] == m, x[j], 0.0)", Reducer::Sum),
            "where(v[j] == m, x[j], 0.0) of 0");
}

}  // namespace
}  // namespace nautilus::algebra

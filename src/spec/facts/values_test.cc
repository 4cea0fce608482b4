// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/values.h"

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;
using expr::Reducer;

// Inputs x[i, j] and c[i]; equations are added by the tests.
class KnownValuesTest : public ::testing::Test {
 protected:
  Expr parse(std::string_view text) {
    expr::Scope scope;
    for (std::string_view n : {"i", "j"}) scope.add_var(n, DType::I64);
    for (std::string_view n : {"x", "t", "e"}) scope.add_tensor(n, DType::F32, 2);
    for (std::string_view n : {"c", "m", "l"}) scope.add_tensor(n, DType::F32, 1);
    std::string messages;
    const Expr e = expr::parse_text(std::string(text), scope, pool_, &messages);
    EXPECT_TRUE(e) << text << messages;
    return e;
  }

  void define(std::string_view name, std::vector<std::string_view> axes, Expr body) {
    Let let{pool_.name(name), {}, DType::F32, body};
    for (std::string_view a : axes) let.axes.push_back({pool_.name(a), pool_.integer(8)});
    equations_.insert_or_assign(let.name, let);
  }

  void define_reduction(std::string_view name, Reducer reducer, std::string_view body) {
    const Expr axes[] = {parse("j")};
    const Expr extents[] = {pool_.integer(8)};
    define(name, {"i"}, pool_.reduce(reducer, parse(body), axes, extents));
  }

  void SetUp() override {
    define("t", {"i", "j"}, parse("where(j <= i, x[i, j], -inf)"));
    define_reduction("m", Reducer::Max, "t[i, j]");
    define("e", {"i", "j"}, parse("exp(t[i, j] - where(m[i] == -inf, 0.0, m[i]))"));
    define_reduction("l", Reducer::Sum, "e[i, j]");
  }

  expr::ExprPool pool_;
  ir::Program program_;
  Equations equations_;
  KnownValues values_{program_, pool_, equations_};
};

TEST_F(KnownValuesTest, MasksAndExtremesAreNotFiniteTheirExponentialsAre) {
  for (const char* text : {"x[i, j]", "c[i] * 2.0", "e[i, j]", "l[i]", "exp(t[i, j])",
                           "where(m[i] == -inf, 0.0, m[i])", "tanh(m[i])", "exp(m[i] + c[i])"})
    EXPECT_TRUE(values_.is_finite(parse(text))) << text;
  for (const char* text : {"t[i, j]", "m[i]", "c[i] - m[i]", "exp(c[i] - m[i])", "exp(-m[i])",
                           "c[i] / l[i]", "log(l[i])", "rsqrt(l[i])"})
    EXPECT_FALSE(values_.is_finite(parse(text))) << text;
}

TEST_F(KnownValuesTest, SignsComeThroughEquations) {
  EXPECT_TRUE(values_.is_nonnegative(parse("l[i] * e[i, j]")));
  EXPECT_FALSE(values_.is_positive(parse("l[i]")));
  EXPECT_TRUE(values_.is_positive(parse("where(l[i] == 0.0, 1.0, l[i])")));
  EXPECT_TRUE(values_.is_positive(parse("l[i] + 0.5")));
  EXPECT_TRUE(values_.is_nonzero(parse("where(c[i] == 0.0, 1.0, c[i])")));
  EXPECT_FALSE(values_.is_nonzero(parse("where(c[i] == 1.0, 1.0, c[i])")));
  EXPECT_FALSE(values_.is_nonnegative(parse("m[i]")));
  EXPECT_TRUE(values_.is_finite(parse("c[i] / where(l[i] == 0.0, 1.0, l[i])")));
}

}  // namespace
}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/magnitude.h"

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::spec {
namespace {

using expr::DType;
using expr::Expr;

// Inputs x[i, j], c[i] and h[i] (f16); e = exp(c), l = the sum of exp(-abs(x)) along a row of 8.
class MagnitudesTest : public ::testing::Test {
 protected:
  Expr parse(std::string_view text) {
    expr::Scope scope;
    for (std::string_view n : {"i", "j"}) scope.add_var(n, DType::I64);
    scope.add_tensor("x", DType::F32, 2);
    scope.add_tensor("h", DType::F16, 1);
    for (std::string_view n : {"c", "e", "l"}) scope.add_tensor(n, DType::F32, 1);
    std::string messages;
    const Expr e = expr::parse_text(std::string(text), scope, pool_, &messages);
    EXPECT_TRUE(e) << text << messages;
    return e;
  }

  void define(std::string_view name, Expr body) {
    Let let{pool_.name(name), {{pool_.name("i"), pool_.integer(8)}}, DType::F32, body};
    equations_.insert_or_assign(let.name, let);
  }

  void SetUp() override {
    define("e", parse("exp(c[i])"));
    const Expr axes[] = {parse("j")};
    const Expr extents[] = {pool_.integer(8)};
    define("l", pool_.reduce(expr::Reducer::Sum, parse("exp(-abs(x[i, j]))"), axes, extents));
  }

  expr::ExprPool pool_;
  ir::Program program_;
  Equations equations_;
  Magnitudes magnitudes_{program_, pool_, equations_};
};

TEST_F(MagnitudesTest, ValuesStayInRangeIfNothingInThemOverflows) {
  for (const char* text :
       {"c[i]", "-abs(c[i])", "tanh(c[i])", "exp(tanh(c[i]) * 40.0)", "exp(-abs(c[i]))", "l[i]",
        "f32(h[i]) * f32(h[i])", "rsqrt(c[i] * c[i] + 0.001)", "c[i] / 2.0",
        "where(c[i] > 0.0, c[i], 1.0)", "min(c[i], 3.0)", "sigmoid(c[i]) * c[i]"})
    EXPECT_TRUE(magnitudes_.is_in_range(parse(text))) << text;
  for (const char* text :
       {"c[i] * c[i]", "c[i] + 1.0", "exp(c[i])", "e[i]", "tanh(e[i])", "c[i] / c[i]", "1.0 / e[i]",
        "exp(f32(h[i]))", "rsqrt(c[i] * c[i])", "c[i] / 0.5", "log(c[i])"})
    EXPECT_FALSE(magnitudes_.is_in_range(parse(text))) << text;
}

TEST_F(MagnitudesTest, DivisorsStayAwayFromZeroByTheirOwnGuardsOnly) {
  for (const char* text :
       {"2.0", "abs(c[i]) + 0.5", "where(l[i] == 0.0, 1.0, l[i])", "max(c[i], 0.001)",
        "exp(tanh(c[i]))", "sqrt(c[i] * c[i] + 0.5)", "e[i] + 1.0"})
    EXPECT_TRUE(magnitudes_.is_away_from_zero(parse(text))) << text;
  for (const char* text : {"c[i]", "e[i]", "l[i]", "exp(-abs(c[i]))", "c[i] + 0.5", "0.0",
                           "(abs(c[i]) + 1e-30) * 1e-30", "min(c[i], 0.5)"})
    EXPECT_FALSE(magnitudes_.is_away_from_zero(parse(text))) << text;
}

}  // namespace
}  // namespace nautilus::spec

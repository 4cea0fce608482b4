// SPDX-License-Identifier: Apache-2.0
#include "expr/conjuncts.h"

#include <gtest/gtest.h>

#include "expr/build.h"

namespace nautilus::expr {
namespace {

TEST(Conjuncts, AreInTheOrderInWhichTheyStand) {
  ExprPool pool;
  const Expr a = pool.var(pool.name("a"), DType::Bool);
  const Expr b = pool.var(pool.name("b"), DType::Bool);
  const Expr c = pool.var(pool.name("c"), DType::Bool);
  const auto both = [&](Expr x, Expr y) { return pool.binary(Op::And, x, y); };
  const std::vector<Expr> all = {a, b, c};
  EXPECT_EQ(conjuncts(both(a, both(b, c))), all);
  EXPECT_EQ(conjuncts(both(both(a, b), c)), all);
}

TEST(Conjuncts, OthersAreOneAndNullHasNone) {
  ExprPool pool;
  const Expr a = pool.var(pool.name("a"), DType::Bool);
  const Expr b = pool.var(pool.name("b"), DType::Bool);
  const Expr either = pool.binary(Op::Or, a, b);
  EXPECT_EQ(conjuncts(either), std::vector<Expr>{either});
  EXPECT_TRUE(conjuncts(Expr()).empty());
}

}  // namespace
}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds/quotient.h"

#include <gtest/gtest.h>

#include "expr/print.h"

namespace nautilus::expr {
namespace {

TEST(Quotient, OnlyWithoutRemainder) {
  ExprPool pool;
  const Expr h = pool.index("Hk");
  const Expr g = pool.index("G");
  const Expr both = pool.binary(Op::Mul, h, g);
  EXPECT_EQ(exact_quotient(pool, both, g), h);
  EXPECT_EQ(exact_quotient(pool, both, h), g);
  EXPECT_FALSE(exact_quotient(pool, pool.binary(Op::Add, both, pool.integer(1)), g));
  EXPECT_FALSE(exact_quotient(pool, h, g));
  const Expr four = pool.integer(4);
  EXPECT_EQ(exact_quotient(pool, pool.binary(Op::Mul, h, four), four), h);
  EXPECT_FALSE(exact_quotient(pool, pool.binary(Op::Mul, h, four), pool.integer(8)));
  EXPECT_FALSE(exact_quotient(pool, h, pool.integer(0)));
}

}  // namespace
}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
#include "vrtile/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "vrtile/ops.h"

namespace nautilus::vrtile {
namespace {

using expr::Expr;
using EK = expr::Op;
using Kind_ = Weight::Kind;

class WeightsTest : public testing::Test {
 protected:
  WeightsTest() {
    Weight reference{.kind = Kind_::Shifted};
    reference.old = Coefficient::one();
    weights.set(pool.name("m"), {reference, 0});
    Weight sum{.kind = Kind_::Scaled};
    sum.old = Coefficient::of({scale}, -std::log2(std::exp(1.0)));
    weights.set(pool.name("l"), {sum, 0});
    weights.set(pool.name("u"), {sum, 0});
  }

  Expr row(const char* tile) { return pool.read(pool.name(tile), ir::DType::F32, at); }
  Expr element(const char* tile) {
    const Expr both[] = {i, e};
    return pool.read(pool.name(tile), ir::DType::F32, both);
  }
  Expr op(EK kind, Expr x, Expr y) { return pool.binary(kind, x, y); }
  Kind_ kind(Expr x) { return weights.of(x).kind; }

  expr::ExprPool pool;
  Expr i = pool.index("i");
  Expr e = pool.index("e");
  Expr at[1] = {i};
  Expr scale = pool.var(pool.name("scale"), ir::DType::F32);
  Weights weights{pool};
};

TEST_F(WeightsTest, QuotientsOfEqualWeightsArePlain) {
  EXPECT_EQ(kind(op(EK::Div, element("u"), row("l"))), Kind_::Plain);
  EXPECT_EQ(kind(op(EK::Mul, element("u"), row("l"))), Kind_::Scaled);
}

TEST_F(WeightsTest, LogarithmAndReferenceCancelInTheirUnits) {
  // l is relative to exp(scale * m): scale * m + log(l) is fixed, with log2 it is not.
  const Expr m = op(EK::Mul, row("m"), scale);
  EXPECT_EQ(kind(op(EK::Add, m, pool.unary(EK::Log, row("l")))), Kind_::Plain);
  EXPECT_EQ(kind(op(EK::Add, m, pool.unary(EK::Log2, row("l")))), Kind_::Shifted);
  EXPECT_EQ(kind(op(EK::Add, row("m"), pool.unary(EK::Log, row("l")))), Kind_::Shifted);
}

TEST_F(WeightsTest, GuardsKeepTheWeight) {
  const Expr zero = pool.floating(0);
  const Expr one = pool.floating(1);
  const Expr l = row("l");
  EXPECT_EQ(kind(pool.select(op(EK::Eq, l, zero), one, l)), Kind_::Scaled);
  EXPECT_EQ(kind(pool.select(op(EK::Gt, l, zero), op(EK::Div, one, l), zero)), Kind_::Scaled);
  EXPECT_EQ(kind(pool.select(op(EK::Gt, l, one), l, zero)), Kind_::Bad);
  const Expr m = row("m");
  EXPECT_EQ(kind(pool.select(op(EK::Eq, m, pool.floating(-INFINITY)), zero, m)), Kind_::Shifted);
  EXPECT_EQ(kind(pool.select(op(EK::Eq, m, zero), zero, m)), Kind_::Bad);
}

TEST_F(WeightsTest, MixturesAreBad) {
  EXPECT_EQ(kind(op(EK::Add, row("l"), pool.floating(1))), Kind_::Bad);
  EXPECT_EQ(kind(op(EK::Mul, row("m"), row("l"))), Kind_::Bad);
  EXPECT_EQ(kind(pool.unary(EK::Tanh, row("l"))), Kind_::Bad);
  EXPECT_EQ(kind(pool.cast(ir::DType::F8E4M3, row("l"))), Kind_::Bad);
  EXPECT_EQ(kind(pool.cast(ir::DType::BF16, row("l"))), Kind_::Scaled);
}

TEST_F(WeightsTest, RowsMayNotBeMixed) {
  const Expr other[] = {e};
  const Expr l = pool.read(pool.name("l"), ir::DType::F32, other);
  EXPECT_EQ(kind(op(EK::Div, row("l"), l)), Kind_::Bad);
  const Expr axes[] = {i};
  const Expr extents[] = {pool.integer(64)};
  EXPECT_EQ(kind(pool.reduce(expr::Reducer::Sum, row("l"), axes, extents)), Kind_::Bad);
  const Expr columns[] = {e};
  EXPECT_EQ(kind(pool.reduce(expr::Reducer::Sum, element("u"), columns, extents)), Kind_::Scaled);
  EXPECT_EQ(kind(pool.reduce(expr::Reducer::Prod, element("u"), columns, extents)), Kind_::Bad);
}

}  // namespace
}  // namespace nautilus::vrtile

// SPDX-License-Identifier: Apache-2.0
#include "spec/eval/eval_reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace nautilus::spec {
namespace {

using expr::float_value;
using expr::kInf;

// Of elements with bounds, the position that the reduction finds and how far it may be off.
expr::Bounded least_position(const std::vector<expr::Bounded>& elements) {
  expr::ExprPool pool;
  const expr::Expr axis = pool.index("i");
  const expr::Expr axes[] = {axis};
  const auto length = static_cast<int64_t>(elements.size());
  const expr::Expr extents[] = {pool.integer(length)};
  const expr::Expr body = pool.read(pool.name("V"), expr::DType::F32, axes);
  const Reduction reduction(pool.reduce(expr::Reducer::ArgMin, body, axes, extents, {}), length,
                            ir::Rounding::Licensed);
  Accumulator acc = reduction.start({float_value(kInf), 0});
  acc.position = -1;
  for (size_t k = 0; k < elements.size(); ++k)
    reduction.add(acc, elements[k], static_cast<int64_t>(k));
  return reduction.finish(acc);
}

TEST(EvalReduction, APositionIsUncertainIfAnElementWithoutBoundMayBeTheBest) {
  const expr::Bounded one{float_value(1), 0};
  const expr::Bounded infinity{float_value(kInf), 0};
  EXPECT_EQ(least_position({infinity, one, infinity}).v.i, 1);
  EXPECT_EQ(least_position({infinity, one, infinity}).e, 0);
  // An uncertain infinity, before the best one and after it.
  const expr::Bounded any{float_value(kInf), kInf};
  EXPECT_EQ(least_position({any, one, infinity}).e, kInf);
  EXPECT_EQ(least_position({infinity, one, any}).e, kInf);
  // An element that is certainly NaN does not count.
  EXPECT_EQ(least_position({{float_value(std::nan("")), 0}, one}).e, 0);
  EXPECT_EQ(least_position({{float_value(std::nan("")), kInf}, one}).e, kInf);
}

// The roundoff that a contract licenses in a sum over k of a product of f32 elements.
double roundoff(expr::ExprPool& pool, const std::vector<expr::Expr>& factors,
                ir::Rounding contract) {
  const expr::Expr axes[] = {pool.index("k")};
  const expr::Expr extents[] = {pool.integer(8)};
  expr::Expr body;
  for (expr::Expr f : factors) body = body ? pool.binary(expr::Op::Mul, body, f) : f;
  const expr::Expr sum = pool.reduce(expr::Reducer::Sum, body, axes, extents, {});
  return licensed_roundoff(sum, body, contract);
}

TEST(EvalReduction, ALicenceRoundsEachF32OperandOfAProduct) {
  expr::ExprPool pool;
  const auto element = [&](std::string_view name, std::vector<expr::Expr> at,
                           expr::DType dtype = expr::DType::F32) {
    return pool.cast(expr::DType::F32, pool.read(pool.name(name), dtype, at));
  };
  const expr::Expr i = pool.index("i");
  const expr::Expr j = pool.index("j");
  const expr::Expr k = pool.index("k");
  const expr::Expr a = element("A", {i, k});
  const expr::Expr b = element("B", {k, j});
  EXPECT_EQ(roundoff(pool, {a, b}, ir::Rounding::Licensed), 0);
  EXPECT_EQ(roundoff(pool, {a, b}, ir::Rounding::Bf16), 0x1p-7 + 0x1p-16);
  EXPECT_EQ(roundoff(pool, {a, b}, ir::Rounding::Tf32), 0x1p-10 + 0x1p-22);
  // 16 bits hold one of them: the other is rounded to those, or as the contract says.
  const expr::Expr half = element("H", {k, j}, expr::DType::F16);
  EXPECT_EQ(roundoff(pool, {a, half}, ir::Rounding::Licensed), 0x1p-11);
  EXPECT_EQ(roundoff(pool, {a, half}, ir::Rounding::Tf32), 0x1p-11);
  // A product of products rounds four times.
  const expr::Expr c = element("C", {k, i, j});
  EXPECT_GT(roundoff(pool, {a, b, c}, ir::Rounding::Bf16), 0x1p-6);
  // Squares of a row, and rows that are multiplied element by element.
  EXPECT_EQ(roundoff(pool, {a, a}, ir::Rounding::Bf16), 0);
  EXPECT_EQ(roundoff(pool, {a, element("D", {k, i})}, ir::Rounding::Bf16), 0);
  // Axes that a pass may divide.
  const expr::Expr row = pool.binary(expr::Op::FloorDiv, i, pool.integer(4));
  const expr::Expr column = pool.binary(expr::Op::Mod, i, pool.integer(4));
  EXPECT_GT(roundoff(pool, {element("E", {row, k}), element("F", {column, k})}, ir::Rounding::Bf16),
            0);
}

}  // namespace
}  // namespace nautilus::spec

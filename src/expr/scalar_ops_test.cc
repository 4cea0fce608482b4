// SPDX-License-Identifier: Apache-2.0
//
// Identities of integer division, wrapping, conversions and the corner cases of minimum and
// maximum: the operators mean what docs/language.md says for every input.
#include "expr/scalar_ops.h"

#include <limits>

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::expr {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kQuiet = std::numeric_limits<double>::quiet_NaN();
const double kSignalling = std::bit_cast<double>(0x7FF0000000000001ULL);

bool same(double a, double b) { return same_value(DType::F64, float_value(a), float_value(b)); }

TEST(ScalarOps, FloorDivisionAndRemainderFitTogether) {
  Random random(7);
  auto check = [](int64_t a, int64_t b) {
    const int64_t q = floor_div(a, b);
    const int64_t r = floor_mod(a, b);
    if (b == 0) {
      ASSERT_EQ(q, 0);
      ASSERT_EQ(r, 0);
      return;
    }
    ASSERT_EQ(wrapping_add(wrapping_mul(q, b), r), a) << a << " / " << b;
    ASSERT_TRUE(b > 0 ? r >= 0 && r < b : r <= 0 && r > b) << a << " % " << b;
  };
  for (int64_t a = -40; a <= 40; ++a) {
    for (int64_t b = -40; b <= 40; ++b) {
      check(a, b);
      if (b == 0) continue;
      const double quotient = static_cast<double>(a) / static_cast<double>(b);
      ASSERT_EQ(floor_div(a, b), static_cast<int64_t>(std::floor(quotient)));
    }
  }
  for (int64_t a : {INT64_MIN, INT64_MIN + 1, INT64_MAX}) {
    for (int64_t b : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) check(a, b);
  }
  for (int k = 0; k < 10000; ++k) check(random.any_size(), random.any_size());
}

TEST(ScalarOps, IntegerArithmeticWrapsAtTheWidthOfItsDType) {
  auto apply_to = [](Op op, DType dtype, int64_t x, int64_t y) {
    const Value args[] = {int_value(x), int_value(y)};
    return apply(op, dtype, dtype, args).i;
  };
  EXPECT_EQ(apply_to(Op::Add, DType::I8, 127, 1), -128);
  EXPECT_EQ(apply_to(Op::Sub, DType::U8, 0, 1), 255);
  EXPECT_EQ(apply_to(Op::Mul, DType::I32, 1 << 16, 1 << 16), 0);
  EXPECT_EQ(apply_to(Op::Add, DType::I64, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(apply_to(Op::Mul, DType::I64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(apply_to(Op::FloorDiv, DType::I32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(apply_to(Op::FloorDiv, DType::I64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(apply_to(Op::Neg, DType::I8, -128, 0), -128);
  EXPECT_EQ(apply_to(Op::Abs, DType::I64, INT64_MIN, 0), INT64_MIN);
  EXPECT_EQ(apply_to(Op::Neg, DType::U8, 1, 0), 255);
}

TEST(ScalarOps, CastsRoundTruncateAndSaturate) {
  auto to_int = [](DType to, double x) { return cast_value(to, DType::F64, float_value(x)).i; };
  EXPECT_EQ(to_int(DType::I32, 2.9), 2);
  EXPECT_EQ(to_int(DType::I32, -2.9), -2);
  EXPECT_EQ(to_int(DType::I32, 1e10), INT32_MAX);
  EXPECT_EQ(to_int(DType::I32, -kInf), INT32_MIN);
  EXPECT_EQ(to_int(DType::I64, 0x1p63), INT64_MAX);
  EXPECT_EQ(to_int(DType::U8, -1), 0);
  EXPECT_EQ(to_int(DType::U8, 255.9), 255);
  EXPECT_EQ(to_int(DType::I8, kQuiet), 0);
  EXPECT_EQ(to_int(DType::Bool, 0.5), 1);
  EXPECT_EQ(to_int(DType::Bool, -0.0), 0);
  auto to_float = [](DType to, DType from, double x) {
    return cast_value(to, from, float_value(x)).f;
  };
  EXPECT_EQ(to_float(DType::F8E4M3, DType::F32, 1e9), 448);
  EXPECT_EQ(to_float(DType::F8E4M3, DType::F32, -kInf), -448);
  EXPECT_EQ(to_float(DType::F16, DType::F32, 1e9), kInf);
  EXPECT_EQ(to_float(DType::BF16, DType::F32, 1.00390625), 1.0);  // a tie, to even
  // A value of f32 may carry more digits than f32 has: only a narrowing cast rounds.
  EXPECT_EQ(to_float(DType::F64, DType::F32, 0.1), 0.1);
  EXPECT_EQ(to_float(DType::F32, DType::F64, 0.1), static_cast<double>(0.1F));
  auto int_to = [](DType to, DType from, int64_t x) { return cast_value(to, from, int_value(x)); };
  EXPECT_EQ(int_to(DType::I8, DType::I64, 300).i, 44);
  EXPECT_EQ(int_to(DType::U8, DType::I8, -1).i, 255);
  EXPECT_EQ(int_to(DType::Bool, DType::I32, 256).i, 1);
  EXPECT_EQ(int_to(DType::F32, DType::I32, 16777217).f, 16777216);
  EXPECT_EQ(int_to(DType::F16, DType::I32, 1 << 20).f, kInf);
  EXPECT_EQ(int_to(DType::F32, DType::Bool, 1).f, 1);
}

TEST(ScalarOps, MinimumAndMaximumIgnoreNaNAndTheOrderOfOperands) {
  const std::vector<double> values = {0.0,   -0.0,   1.0,         -1.0,    1e300, kInf,
                                      -kInf, kQuiet, kSignalling, -kQuiet, 5e-324};
  for (double x : values) {
    for (double y : values) {
      const double high = float_max(x, y);
      const double low = float_min(x, y);
      EXPECT_TRUE(same(high, float_max(y, x))) << x << ' ' << y;
      EXPECT_TRUE(same(low, float_min(y, x))) << x << ' ' << y;
      EXPECT_TRUE(same(low, -float_max(-x, -y))) << x << ' ' << y;
      EXPECT_EQ(std::isnan(high), std::isnan(x) && std::isnan(y));
      if (std::isnan(x)) {
        EXPECT_TRUE(same(high, y) && same(low, y)) << y;
      } else if (!std::isnan(y)) {
        EXPECT_TRUE(high >= x && high >= y && low <= x && low <= y);
      }
    }
  }
  EXPECT_FALSE(std::signbit(float_max(-0.0, 0.0)));
  EXPECT_TRUE(std::signbit(float_min(0.0, -0.0)));
}

TEST(ScalarOps, IdentitiesChangeNothing) {
  for (Reducer r : {Reducer::Sum, Reducer::Prod, Reducer::Max, Reducer::Min}) {
    for (DType dtype : {DType::I8, DType::U8, DType::I32, DType::I64}) {
      for (int64_t x : {int_min(dtype), int64_t{0}, int64_t{5}, int_max(dtype)}) {
        const Value args[] = {identity(r, dtype), int_value(x)};
        EXPECT_EQ(apply(combiner(r), dtype, dtype, args).i, x) << name(r) << name(dtype);
      }
    }
    for (double x : {0.0, 1.5, -1.5, kInf, -kInf}) {
      const Value args[] = {identity(r, DType::F32), float_value(x)};
      EXPECT_TRUE(same(apply(combiner(r), DType::F32, DType::F32, args).f, x)) << name(r) << x;
    }
  }
  for (int64_t x : {0, 1}) {
    for (Reducer r : {Reducer::Any, Reducer::All}) {
      const Value args[] = {identity(r, DType::Bool), int_value(x)};
      EXPECT_EQ(apply(combiner(r), DType::Bool, DType::Bool, args).i, x);
    }
  }
}

TEST(ScalarOps, FunctionsAtTheirCorners) {
  auto unary = [](Op op, double x) {
    const Value v = float_value(x);
    return apply(op, DType::F64, DType::F64, &v).f;
  };
  EXPECT_EQ(unary(Op::Round, 0.5), 0);
  EXPECT_EQ(unary(Op::Round, 1.5), 2);
  EXPECT_EQ(unary(Op::Round, 2.5), 2);
  EXPECT_EQ(unary(Op::Floor, -0.5), -1);
  EXPECT_EQ(unary(Op::Sigmoid, -1000), 0);
  EXPECT_EQ(unary(Op::Sigmoid, 1000), 1);
  EXPECT_EQ(unary(Op::Sigmoid, 0), 0.5);
  EXPECT_TRUE(std::isnan(unary(Op::Sigmoid, kQuiet)));
  EXPECT_EQ(unary(Op::Rsqrt, 0), kInf);
  EXPECT_EQ(unary(Op::Log, 0), -kInf);
  EXPECT_EQ(unary(Op::Exp, -kInf), 0);
  EXPECT_TRUE(same(unary(Op::Neg, 0.0), -0.0));
}

}  // namespace
}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
//
// Operands are moved within their bounds, the operator is computed in f32 with an error of its own
// that the contract allows: the result never leaves the bound of the operator.
#include "expr/error_bound.h"

#include <functional>

#include <gtest/gtest.h>

#include "expr/expr_test_util.h"

namespace nautilus::expr {
namespace {

constexpr int kCases = 10000;

// A float with a bound of any relative size, now and then none.
Bounded random_operand(Random& random, double low, double high) {
  double x = random.chance(30) ? low + (high - low) * random.unit()
                               : (random.chance(50) ? 1 : -1) * std::exp2(random.unit() * 60 - 30);
  if (x < low || x > high) x = low + (high - low) * random.unit();
  if (random.chance(3)) x = low <= 0 && high >= 0 ? 0 : low;
  x = static_cast<double>(static_cast<float>(x));
  double e = random.chance(20) ? 0 : std::fabs(x) * std::exp2(-random.unit() * 30);
  if (random.chance(10)) e = std::exp2(-random.unit() * 40);
  return {float_value(x), e};
}

// Some f32 value in the operand's interval, often at its ends.
float moved(Random& random, Bounded x) {
  const double where = random.chance(60) ? (random.chance(50) ? 1 : -1) : random.unit() * 2 - 1;
  const auto y = static_cast<float>(x.v.f + where * x.e);
  if (std::fabs(static_cast<double>(y) - x.v.f) <= x.e) return y;
  const float inner = std::nextafterf(y, static_cast<float>(x.v.f));
  const bool fits = std::fabs(static_cast<double>(inner) - x.v.f) <= x.e;
  return fits ? inner : static_cast<float>(x.v.f);
}

// Rounded to f32, up to one unit in the last place away, subnormals perhaps flushed.
double computed(Random& random, double exact, bool is_function) {
  auto y = static_cast<float>(exact);
  if (is_function && y != 0 && random.chance(50)) {
    y = std::nextafterf(y, random.chance(50) ? HUGE_VALF : -HUGE_VALF);
  }
  if (std::fabs(y) < std::numeric_limits<float>::min() && random.chance(50)) y = 0;
  return static_cast<double>(y);
}

struct Tally {
  int finite = 0;
  int cases = 0;
  void add(double bound) {
    ++cases;
    finite += std::isfinite(bound) ? 1 : 0;
  }
};

TEST(ErrorBound, UnaryOperatorsStayWithinTheirBound) {
  struct Domain {
    Op op;
    double low;
    double high;
  };
  const Domain domains[] = {
      {Op::Neg, -1e30, 1e30},   {Op::Abs, -1e30, 1e30},  {Op::Floor, -1e6, 1e6},
      {Op::Round, -1e6, 1e6},   {Op::Exp, -100, 88.7},   {Op::Exp2, -150, 127.99},
      {Op::Log, 1e-30, 1e30},   {Op::Log2, 1e-30, 1e30}, {Op::Sqrt, 0, 1e30},
      {Op::Rsqrt, 1e-30, 1e30}, {Op::Tanh, -20, 20},     {Op::Erf, -10, 10},
      {Op::Sigmoid, -120, 120}, {Op::Sin, -1000, 1000},  {Op::Cos, -1000, 1000},
      {Op::Log1p, -0.99, 1e30}, {Op::Expm1, -100, 88.7},
  };
  Random random(21);
  for (const Domain& domain : domains) {
    const Op op = domain.op;
    const bool is_exact = op == Op::Neg || op == Op::Abs || op == Op::Floor || op == Op::Round;
    Tally tally;
    for (int k = 0; k < kCases; ++k) {
      const Bounded x = random_operand(random, domain.low, domain.high);
      with_float_unary(op, [&](auto f) {
        const double value = f(x.v.f);
        if (!std::isfinite(value)) return;
        const double bound = unary_bound(op, DType::F32, x.v.f, x.e, value);
        const auto y = static_cast<double>(moved(random, x));
        const double got = is_exact ? f(y) : computed(random, f(y), true);
        tally.add(bound);
        const bool is_within = bound == kInf || std::fabs(got - value) <= bound;
        ASSERT_TRUE(is_within) << info(op).name << " of " << x.v.f << " +- " << x.e << " at " << y
                               << ": " << got << " for " << value << " +- " << bound;
      });
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(tally.finite, tally.cases / 2) << info(op).name;
  }
}

// A function with the error that the device's documentation gives it.
double coarsely_computed(Random& random, Op op, double y) {
  const double sign = random.chance(50) ? 1 : -1;
  const double log2 = std::log2(std::fabs(y));
  switch (op) {
    case Op::Tanh:
      return std::clamp(std::tanh(y) * (1 + sign * 0x1p-11), -1.0, 1.0);
    case Op::Erf:
      return std::clamp(std::erf(y) + sign * 4.4e-7, -1.0, 1.0);
    case Op::Log2:
      return log2 + sign * 0x1p-22 * std::max(1.0, std::fabs(log2));
    case Op::Log:  // one more rounding
      return static_cast<double>(
          static_cast<float>(log2 + sign * 0x1p-22 * std::max(1.0, std::fabs(log2))) * 0.69314718f);
    default:
      return 0;
  }
}

TEST(ErrorBound, CoarseFunctionsStayWithinTheirBound) {
  Random random(27);
  for (Op op : {Op::Tanh, Op::Erf, Op::Log, Op::Log2}) {
    const bool is_log = op == Op::Log || op == Op::Log2;
    Tally tally;
    int beyond = 0;  // what a few ulp would not allow
    for (int k = 0; k < kCases; ++k) {
      Bounded x = is_log ? random_operand(random, 1e-30, 1e30) : random_operand(random, -10, 10);
      if (is_log && random.chance(50))  // near the zero
        x = {float_value(static_cast<double>(static_cast<float>(1 + random.unit() * 1e-3))), 0};
      const double value = apply(op, DType::F32, DType::F32, &x.v).f;
      if (!std::isfinite(value)) continue;
      const double bound = unary_bound(op, DType::F32, x.v.f, x.e, value, Functions::Coarse);
      const auto y = static_cast<double>(moved(random, x));
      if (is_log && y <= 0) continue;
      const double got = computed(random, coarsely_computed(random, op, y), false);
      tally.add(bound);
      const bool is_within = bound == kInf || std::fabs(got - value) <= bound;
      ASSERT_TRUE(is_within) << info(op).name << " of " << x.v.f << " +- " << x.e << " at " << y
                             << ": " << got << " for " << value << " +- " << bound;
      const double narrow = unary_bound(op, DType::F32, x.v.f, x.e, value);
      ASSERT_LE(narrow, bound);
      beyond += std::fabs(got - value) > narrow ? 1 : 0;
    }
    EXPECT_GT(tally.finite, tally.cases / 2) << info(op).name;
    EXPECT_GT(beyond, tally.cases / 20) << info(op).name;
  }
}

TEST(ErrorBound, OnlySomeFunctionsAreCoarse) {
  const auto bound = [](Op op, DType dtype, double x, Functions functions) {
    const Value v = float_value(x);
    return unary_bound(op, dtype, x, 0, apply(op, dtype, dtype, &v).f, functions);
  };
  for (Op op : {Op::Exp, Op::Exp2, Op::Sqrt, Op::Rsqrt, Op::Sigmoid, Op::Sin, Op::Cos})
    EXPECT_EQ(bound(op, DType::F32, 0.7, Functions::Coarse),
              bound(op, DType::F32, 0.7, Functions::FewUlp))
        << info(op).name;
  for (Op op : {Op::Tanh, Op::Erf, Op::Log, Op::Log2}) {
    EXPECT_EQ(bound(op, DType::F64, 0.7, Functions::Coarse),
              bound(op, DType::F64, 0.7, Functions::FewUlp))
        << info(op).name;
    EXPECT_LT(bound(op, DType::F32, 0.7, Functions::FewUlp),
              bound(op, DType::F32, 0.7, Functions::Coarse))
        << info(op).name;
  }
  // The coarse logarithm treats subnormal numbers as 0; that of 0 itself is known.
  EXPECT_EQ(bound(Op::Log, DType::F32, 1e-40, Functions::Coarse), kInf);
  EXPECT_LT(bound(Op::Log, DType::F32, 1e-40, Functions::FewUlp), 1e-4);
  EXPECT_EQ(bound(Op::Log2, DType::F32, 0, Functions::Coarse), 0);
  // An angle beyond f32 is infinite in a kernel.
  EXPECT_EQ(bound(Op::Cos, DType::F32, 1e308, Functions::FewUlp), kInf);
  EXPECT_LT(bound(Op::Cos, DType::F64, 1e308, Functions::FewUlp), 3);
  EXPECT_EQ(unary_bound(Op::Sin, DType::F32, 1, kInf, std::sin(1)), kInf);
  EXPECT_EQ(bound(Op::Tanh, DType::F32, 0, Functions::Coarse), 0);
}

TEST(ErrorBound, BinaryOperatorsStayWithinTheirBound) {
  Random random(22);
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Min, Op::Max, Op::Pow}) {
    Tally tally;
    for (int k = 0; k < 2 * kCases; ++k) {
      const bool is_power = op == Op::Pow;
      Bounded x = is_power ? random_operand(random, -10, 1e6) : random_operand(random, -1e30, 1e30);
      Bounded y = is_power ? random_operand(random, -6, 6) : random_operand(random, -1e30, 1e30);
      if (is_power && random.chance(60)) y = {float_value(std::nearbyint(y.v.f)), 0};
      if (op == Op::Sub && random.chance(30)) y.v.f = x.v.f;  // cancellation
      with_float_binary(op, [&](auto f) {
        const double value = f(x.v.f, y.v.f);
        if (!std::isfinite(value)) return;
        const double bound = binary_bound(op, DType::F32, x, y, value);
        const auto a = static_cast<double>(moved(random, x));
        const auto b = static_cast<double>(moved(random, y));
        const bool is_exact = op == Op::Min || op == Op::Max;
        double exact = f(a, b);
        if (op == Op::Div && random.chance(50)) exact = a * computed(random, 1 / b, false);
        const double got = is_exact ? exact : computed(random, exact, is_power);
        tally.add(bound);
        const bool is_within = bound == kInf || std::fabs(got - value) <= bound;
        ASSERT_TRUE(is_within) << info(op).name << " of " << x.v.f << " +- " << x.e << " and "
                               << y.v.f << " +- " << y.e << " at " << a << ", " << b << ": " << got
                               << " for " << value << " +- " << bound;
      });
      if (HasFatalFailure()) return;
    }
    EXPECT_GT(tally.finite, tally.cases / 2) << info(op).name;
  }
}

TEST(ErrorBound, APowerMayBeComputedThroughLogarithms) {
  Random random(23);
  for (int k = 0; k < kCases; ++k) {
    const auto x = static_cast<float>(std::exp2(random.unit() * 20 - 10));
    const auto y = static_cast<float>(random.unit() * 16 - 8);
    const double value = std::pow(static_cast<double>(x), static_cast<double>(y));
    const double bound = binary_bound(Op::Pow, DType::F32, {float_value(static_cast<double>(x)), 0},
                                      {float_value(static_cast<double>(y)), 0}, value);
    const auto got = static_cast<double>(std::exp2f(y * std::log2f(x)));
    ASSERT_LE(std::fabs(got - value), bound) << x << " ^ " << y;
  }
}

TEST(ErrorBound, AnInfinityBesideWhatMayBeZeroHasNoBound) {
  const Bounded infinity{float_value(kInf), 0};
  const Bounded tiny{float_value(1e-320), 1.2e-38};  // 0 in f32
  const Bounded clear{float_value(2), 1e-6};
  const auto bound = [](Op op, Bounded x, Bounded y) {
    const Value at[] = {x.v, y.v};
    return binary_bound(op, DType::F32, x, y, apply(op, DType::F32, DType::F32, at).f);
  };
  EXPECT_EQ(bound(Op::Mul, infinity, tiny), kInf);
  EXPECT_EQ(bound(Op::Mul, tiny, infinity), kInf);
  EXPECT_EQ(bound(Op::Div, infinity, tiny), kInf);
  EXPECT_EQ(bound(Op::Pow, infinity, tiny), kInf);
  EXPECT_EQ(bound(Op::Pow, {float_value(1 + 1e-9), 1e-7}, infinity), kInf);
  // Values that are certainly not 0, certainly 0, or certainly NaN.
  EXPECT_EQ(bound(Op::Mul, infinity, clear), 0);
  EXPECT_EQ(bound(Op::Div, infinity, clear), 0);
  EXPECT_EQ(bound(Op::Pow, infinity, clear), 0);
  EXPECT_EQ(bound(Op::Mul, infinity, {float_value(0), 0}), 0);
  EXPECT_EQ(bound(Op::Mul, {float_value(std::nan("")), 0}, tiny), 0);
  EXPECT_EQ(bound(Op::Div, {float_value(std::nan("")), 0}, tiny), 0);
}

TEST(ErrorBound, IntegerOperatorsStayWithinTheirBound) {
  Random random(24);
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::FloorDiv, Op::Mod}) {
    for (int k = 0; k < kCases; ++k) {
      const int64_t ex = random.in(0, 3);
      const int64_t ey = random.in(0, 3);
      const Value x[] = {int_value(random.in(-50, 50)), int_value(random.in(-50, 50))};
      const Value y[] = {int_value(x[0].i + random.in(-ex, ex)),
                         int_value(x[1].i + random.in(-ey, ey))};
      const double bound =
          int_binary_bound(op, {x[0], static_cast<double>(ex)}, {x[1], static_cast<double>(ey)});
      const int64_t difference =
          apply(op, DType::I64, DType::I64, y).i - apply(op, DType::I64, DType::I64, x).i;
      ASSERT_LE(std::fabs(static_cast<double>(difference)), bound) << info(op).name;
    }
  }
  for (Op op : {Op::And, Op::Or}) {
    for (int k = 0; k < 16; ++k) {
      const Bounded x{int_value(k & 1), static_cast<double>(k >> 1 & 1)};
      const Bounded y{int_value(k >> 2 & 1), static_cast<double>(k >> 3 & 1)};
      double largest = 0;
      for (int64_t a = 0; a < 2; ++a) {
        for (int64_t b = 0; b < 2; ++b) {
          if ((a != x.v.i && x.e == 0) || (b != y.v.i && y.e == 0)) continue;
          const bool got = op == Op::And ? a && b : a || b;
          const bool want = op == Op::And ? x.v.i && y.v.i : x.v.i || y.v.i;
          largest = std::max(largest, got != want ? 1.0 : 0.0);
        }
      }
      EXPECT_GE(int_binary_bound(op, x, y), largest) << info(op).name << k;
    }
  }
}

TEST(ErrorBound, ComparisonsNearATieAreUncertain) {
  Random random(25);
  for (Op op : {Op::Eq, Op::Ne, Op::Lt, Op::Le, Op::Gt, Op::Ge}) {
    for (int k = 0; k < kCases; ++k) {
      const Bounded x = random_operand(random, -100, 100);
      Bounded y = random_operand(random, -100, 100);
      if (random.chance(50)) y.v.f = x.v.f + (random.unit() * 3 - 1.5) * (x.e + y.e);
      const Value at[] = {x.v, y.v};
      const Value near[] = {float_value(static_cast<double>(moved(random, x))),
                            float_value(static_cast<double>(moved(random, y)))};
      if (std::fabs(near[1].f - y.v.f) > y.e) continue;
      const double bound = comparison_bound(true, x, y);
      const bool differs =
          apply(op, DType::Bool, DType::F32, at).i != apply(op, DType::Bool, DType::F32, near).i;
      ASSERT_GE(bound, differs ? 1 : 0) << info(op).name << ' ' << x.v.f << ' ' << y.v.f;
      const bool is_clear = std::fabs(x.v.f - y.v.f) > (x.e + y.e) * 1.001;
      ASSERT_FALSE((is_clear || x.e + y.e == 0) && bound > 0);
    }
  }
  const Bounded mask{float_value(-kInf), 0};
  EXPECT_EQ(comparison_bound(true, mask, mask), 0);
  EXPECT_EQ(comparison_bound(true, {float_value(3), 1}, mask), 0);
  // An overflowed value may also be NaN: an infinity is not certain.
  const Bounded overflow{float_value(kInf), kInf};
  EXPECT_EQ(comparison_bound(true, overflow, overflow), 1);
  EXPECT_EQ(comparison_bound(true, {float_value(std::nan("")), kInf}, mask), 1);
  EXPECT_EQ(comparison_bound(false, {int_value(3), 1}, {int_value(4), 0}), 1);
  EXPECT_EQ(comparison_bound(false, {int_value(3), 1}, {int_value(5), 0}), 0);
}

Value random_number(Random& random, DType dtype) {
  if (dtype == DType::Bool) return int_value(random.in(0, 1));
  if (is_int(dtype)) return int_value(wrap_to(dtype, random.any_size() / 4096));  // exact as fp64
  for (;;) {
    const double v =
        random.chance(50) ? std::exp2(random.unit() * 40 - 25) : random.unit() * 300 - 150;
    const double r = round_to(dtype, random.chance(50) ? v : -v);
    if (std::isfinite(r)) return float_value(r);
  }
}

TEST(ErrorBound, CastsStayWithinTheirBound) {
  Random random(26);
  auto as_double = [](DType d, Value v) { return is_float(d) ? v.f : static_cast<double>(v.i); };
  for (int from_index = 0; from_index < kDTypeCount; ++from_index) {
    for (int to_index = 0; to_index < kDTypeCount; ++to_index) {
      const auto from = static_cast<DType>(from_index);
      const auto to = static_cast<DType>(to_index);
      for (int k = 0; k < 2000; ++k) {
        const Value x = random_number(random, from);
        Value moved_x = random_number(random, from);
        if (is_float(from) && random.chance(80)) {
          moved_x.f =
              round_to(from, x.f * (1 + (random.unit() - 0.5) * std::exp2(-random.in(0, 20))));
        } else if (is_int(from) && random.chance(80)) {
          moved_x.i = wrap_to(from, wrapping_add(x.i, random.in(-3, 3)));
        }
        const double e = is_float(from)
                             ? std::fabs(moved_x.f - x.f)
                             : std::fabs(static_cast<double>(wrapping_sub(moved_x.i, x.i)));
        if (!std::isfinite(e)) continue;
        const Value want = cast_value(to, from, x);
        const Value got = cast_value(to, from, moved_x);
        const double bound = cast_bound(to, from, {x, e * (1 + 1e-12)}, want);
        const double a = as_double(to, got);
        const double b = as_double(to, want);
        double difference = a == b ? 0 : std::fabs(a - b);
        if (!is_float(to)) difference = std::fabs(static_cast<double>(wrapping_sub(got.i, want.i)));
        ASSERT_TRUE(difference <= bound)
            << name(from) << " to " << name(to) << ": " << as_double(from, x) << " +- " << e
            << " gives " << b << " +- " << bound << ", not " << a;
      }
    }
  }
}

TEST(ErrorBound, AnUncertainConditionCostsTheStep) {
  const Bounded yes{int_value(1), 0};
  const Bounded maybe{int_value(1), 1};
  const Bounded x{float_value(3), 0.5};
  const Bounded y{float_value(5), 0.25};
  EXPECT_EQ(select_bound(DType::F32, yes, x, y), 0.5);
  EXPECT_EQ(select_bound(DType::F32, maybe, x, y), 2.5);
  EXPECT_EQ(select_bound(DType::F32, maybe, x, x), 0.5);
  EXPECT_EQ(select_bound(DType::F32, maybe, x, {float_value(-kInf), 0}), kInf);
  EXPECT_EQ(select_bound(DType::F32, maybe, {float_value(kInf), 0}, {float_value(kInf), 0}), 0);
}

}  // namespace
}  // namespace nautilus::expr

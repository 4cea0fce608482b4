// SPDX-License-Identifier: Apache-2.0
#include "emulator/fused_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "emulator/half.h"

namespace nautilus::emulator {
namespace {

constexpr Operand kAll[] = {Operand::BF16, Operand::F16, Operand::TF32, Operand::F8E4M3,
                            Operand::F8E5M2};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Terms = std::vector<std::pair<float, float>>;

std::unique_ptr<Factors> zeros(Operand a, Operand b, int n) {
  auto f = std::make_unique<Factors>();
  f->a_operand = a;
  f->b_operand = b;
  f->n = n;
  for (float& x : f->a) x = 0;
  for (float& x : f->b) x = 0;
  return f;
}

// c and the terms, at places from `first` on, in one instruction. Both ways to add must agree.
float sum(Operand a, Operand b, float c, const Terms& terms, int first = 0) {
  const auto f = zeros(a, b, 8);
  for (size_t i = 0; i < terms.size(); ++i) {
    const int k = first + static_cast<int>(i);
    f->a[3 * f->depth() + k] = terms[i].first;
    f->b[k * 8 + 5] = terms[i].second;
  }
  std::vector<float> sums(kRows * 8, c);
  add_products(*f, sums.data());
  const float out = sums[3 * 8 + 5];
  EXPECT_EQ(bits_of_float(out), bits_of_float(fused_sum(*f, 3, 5, c)));
  return out;
}

float sum(Operand operand, float c, const Terms& terms) { return sum(operand, operand, c, terms); }

TEST(FusedSum, SixteenBitsKeepTwentyFiveBitsOfTermsAndTwentyThreeOfTheSum) {
  for (const Operand operand : {Operand::BF16, Operand::F16, Operand::TF32}) {
    const auto one_and = [&](float factor, size_t count) {
      return sum(operand, 1, Terms(count, {factor * 0x1p-12f, 0x1p-12f}));
    };
    EXPECT_EQ(one_and(1, 1), 1);  // 2^-24 is kept, the sum is not
    EXPECT_EQ(one_and(1, 2), 1 + 0x1p-23f);
    EXPECT_EQ(one_and(0.5f, 1), 1);
    EXPECT_EQ(one_and(0.5f, 4), 1 + 0x1p-23f);
    EXPECT_EQ(one_and(0.25f, 8), 1);  // 2^-26 is not kept
    EXPECT_EQ(one_and(-1, 1), 1 - 0x1p-24f);
    EXPECT_EQ(one_and(-0.5f, 1), 1 - 0x1p-24f);  // 1 - 2^-25, toward zero
    EXPECT_EQ(one_and(-0.25f, 1), 1);
    EXPECT_EQ(sum(operand, -1, {{0x1p-13f, 0x1p-12f}}), -1 + 0x1p-24f);
    EXPECT_EQ(sum(operand, 0x1p-26f, {{1, 1}}), 1);
    EXPECT_EQ(sum(operand, 1, {{-1, 1}, {0x1p-13f, 0x1p-12f}}), 0x1p-25f);
    EXPECT_EQ(sum(operand, 1, {{-1, 1}, {0x1p-13f, 0x1p-13f}}), 0);
    EXPECT_EQ(sum(operand, 0x1.fffffep0f, {}), 0x1.fffffep0f);
  }
}

TEST(FusedSum, EightBitsKeepThirteen) {
  for (const Operand a : {Operand::F8E4M3, Operand::F8E5M2}) {
    for (const Operand b : {Operand::F8E4M3, Operand::F8E5M2}) {
      const auto one_and = [&](float factor, size_t count) {
        return sum(a, b, 1, Terms(count, {factor * 0x1p-6f, 0x1p-7f}));
      };
      EXPECT_EQ(one_and(1, 1), 1 + 0x1p-13f);
      EXPECT_EQ(one_and(0.5f, 31), 1);  // 2^-14 is not kept
      EXPECT_EQ(one_and(1.5f, 2), 1 + 0x1p-12f);
      EXPECT_EQ(one_and(-1, 1), 1 - 0x1p-13f);
      EXPECT_EQ(one_and(-0.5f, 31), 1);
      EXPECT_EQ(sum(a, b, -1, {{-0x1p-6f, 0x1p-8f}}), -1);
      EXPECT_EQ(sum(a, b, 1 + 0x1p-14f, {}), 1);  // of the accumulator neither
      EXPECT_EQ(sum(a, b, -1 - 0x1p-13f - 0x1p-23f, {}), -1 - 0x1p-13f);
      EXPECT_EQ(sum(a, b, 0x1p-13f, {{1, 1}}), 1 + 0x1p-13f);
      EXPECT_EQ(sum(a, b, 0x1.8p-14f, {{1, 1}}), 1);
    }
  }
}

TEST(FusedSum, EveryPlaceCountsAlike) {
  for (const Operand operand : kAll) {
    const float grain = std::ldexp(1.f, -sum_rule(operand).result_bits);
    for (int k = 0; k < depth_of(operand); ++k) {
      EXPECT_EQ(sum(operand, operand, 1, {{grain * 64, 0x1p-6f}}, k), 1 + grain);
      EXPECT_EQ(sum(operand, operand, grain, {{1, 1}}, k), 1 + grain);
    }
  }
}

// A product of 2 or more has the exponent of its factors: 1.5 * 1.5 that of 1.
TEST(FusedSum, ExponentsOfProductsAreThoseOfTheirFactors) {
  EXPECT_EQ(sum(Operand::F8E4M3, 0x1p-13f, {{1.5f, 1.5f}, {0x1p-6f, 0x1p-7f}}), 2.25f + 0x1p-12f);
  EXPECT_EQ(sum(Operand::BF16, 0, {{1.5f, 1.5f}, {0x1p-12f, 0x1p-13f}, {0x1p-12f, 0x1p-13f}}),
            2.25f);
  const Terms eight(8, {0x1p-12f, 0x1p-13f});
  Terms terms = eight;
  terms.push_back({1.5f, 1.5f});
  EXPECT_EQ(sum(Operand::BF16, 0, terms), 2.25f + 0x1p-22f);
}

// The smallest f16, 2^-24, has exponent -14: beside it, 2^-39 is kept and 2^-40 is not.
TEST(FusedSum, SubnormalFactorsHaveTheLeastExponent) {
  EXPECT_EQ(sum(Operand::F16, 0, {{0x1p-24f, 1}, {0x1p-20f, 0x1p-19f}}), 0x1p-24f + 0x1p-39f);
  EXPECT_EQ(sum(Operand::F16, 0, {{0x1p-24f, 1}, {0x1p-20f, 0x1p-20f}}), 0x1p-24f);
  // 2^-9 of e4m3 has exponent -6.
  EXPECT_EQ(sum(Operand::F8E4M3, 0, {{0x1p-9f, 1}, {0x1p-9f, 0x1p-9f}}), 0x1p-9f + 0x1p-18f);
  EXPECT_EQ(sum(Operand::F8E4M3, 0, {{0x1p-9f, 4}, {0x1p-9f, 0x1p-9f}}), 0x1p-7f);
  EXPECT_EQ(sum(Operand::F8E5M2, 0, {{0x1p-16f, 1}, {0x1p-16f, 0x1p-11f}}), 0x1p-16f + 0x1p-27f);
  EXPECT_EQ(sum(Operand::F8E5M2, 0, {{0x1p-16f, 1}, {0x1p-16f, 0x1p-12f}}), 0x1p-16f);
}

TEST(FusedSum, ResultsBelowTheNormalOnesAreKept) {
  EXPECT_EQ(sum(Operand::BF16, 0, {{0x1p-100f, 0x1p-40f}}), 0x1p-140f);
  EXPECT_EQ(sum(Operand::TF32, 0, {{0x1p-100f, 0x1p-49f}}), 0x1p-149f);
  EXPECT_EQ(sum(Operand::TF32, 0, {{0x1p-100f, 0x1p-50f}}), 0);
  EXPECT_EQ(sum(Operand::TF32, 0, {{0x1p-100f, 0x1p-50f}, {0x1p-100f, 0x1p-50f}}), 0x1p-149f);
  EXPECT_EQ(sum(Operand::BF16, 0x1p-149f, {}), 0x1p-149f);
  EXPECT_EQ(sum(Operand::F8E4M3, 0x1p-139f, {}), 0x1p-139f);
  EXPECT_EQ(sum(Operand::F8E4M3, 0x1p-140f, {}), 0);
}

TEST(FusedSum, InfinitiesAndNanCount) {
  const float nan = std::nanf("");
  for (const Operand operand : kAll) {
    EXPECT_EQ(bits_of_float(sum(operand, nan, {})), 0x7fffffffu);
    EXPECT_EQ(bits_of_float(sum(operand, 1, {{-nan, 0}})), 0x7fffffffu);
    EXPECT_EQ(sum(operand, kInfinity, {{1, -1}}), kInfinity);
    EXPECT_EQ(sum(operand, -kInfinity, {{1, -1}}), -kInfinity);
    if (operand == Operand::F8E4M3) continue;  // it has none
    EXPECT_EQ(sum(operand, 1, {{-kInfinity, 1}}), -kInfinity);
    EXPECT_EQ(bits_of_float(sum(operand, 1, {{kInfinity, 0}})), 0x7fffffffu);
    EXPECT_EQ(bits_of_float(sum(operand, kInfinity, {{-kInfinity, 1}})), 0x7fffffffu);
    EXPECT_EQ(bits_of_float(sum(operand, 0, {{kInfinity, 1}, {kInfinity, -1}})), 0x7fffffffu);
  }
}

TEST(FusedSum, SumsBeyondF32AreInfinite) {
  EXPECT_EQ(sum(Operand::BF16, 0, {{0x1p100f, 0x1p28f}}), kInfinity);
  EXPECT_EQ(sum(Operand::BF16, 0, {{0x1p100f, 0x1p28f}, {-0x1p100f, 0x1p27f}}), 0x1p127f);
  EXPECT_EQ(sum(Operand::BF16, 0, {{0x1p100f, 0x1p100f}, {-0x1p100f, 0x1p100f}, {1, 1}}), 0);
  EXPECT_EQ(sum(Operand::TF32, 0x1.fffffep127f, {{0x1p52f, 0x1p51f}}), 0x1.fffffep127f);
  EXPECT_EQ(sum(Operand::TF32, -0x1.fffffep127f, {{-0x1p52f, 0x1p52f}}), -kInfinity);
}

// Sixteen products of nearly 4 do not fit 31 bits beside the digits that are kept.
TEST(FusedSum, TheLargestSumsFit) {
  const float most = 2 - 0x1p-7f;
  const Terms terms(16, {most, most});
  EXPECT_EQ(sum(Operand::BF16, 0x1.fffffep0f, terms),
            static_cast<float>(
                std::ldexp(std::trunc(std::ldexp(16.0 * most * most + 0x1.fffffep0, 17)), -17)));
  EXPECT_EQ(sum(Operand::BF16, 0, Terms(16, {-most, most})), -16 * most * most);
}

// The rule once more, with integers only.

struct Number {
  int64_t significand;  // with its sign
  int unit;             // exponent of its last bit
  int exponent;
};

Number number_of(float x, int least) {
  const uint32_t bits = bits_of_float(x);
  const int field = static_cast<int>(bits >> 23 & 0xffu);
  const int64_t fraction = bits & 0x7fffffu;
  const int64_t size = field == 0 ? fraction : fraction | 0x800000;
  return {bits >> 31 != 0 ? -size : size, std::max(field, 1) - 150, std::max(field - 127, least)};
}

int64_t shifted(int64_t x, int by) {
  const int64_t size = std::abs(x);
  const int64_t out = by >= 0 ? size << by : by <= -63 ? 0 : size >> -by;
  return x < 0 ? -out : out;
}

float sum_of_integers(const Factors& f, int row, int column, float c) {
  const auto [term_bits, result_bits] = sum_rule(f.a_operand);
  std::vector<Number> terms = {number_of(c, -126)};
  for (int k = 0; k < f.depth(); ++k) {
    const Number x = number_of(f.a[row * f.depth() + k], least_exponent(f.a_operand));
    const Number y = number_of(f.b[k * f.n + column], least_exponent(f.b_operand));
    if (x.significand == 0 || y.significand == 0) continue;
    terms.push_back({x.significand * y.significand, x.unit + y.unit, x.exponent + y.exponent});
  }
  int largest = -1000;
  for (const Number& term : terms) largest = std::max(largest, term.exponent);
  int64_t total = 0;
  for (const Number& term : terms) {
    total += shifted(term.significand, term.unit - (largest - term_bits));
  }
  if (total == 0) return 0;
  int unit = largest - term_bits;
  while (std::abs(total) >> (result_bits + 1) != 0 || unit < -126 - result_bits) {
    total = shifted(total, -1);
    ++unit;
  }
  return static_cast<float>(std::ldexp(static_cast<double>(total), unit));
}

float random_number(base::Random& random, int digits, int least, int most) {
  const auto fraction = static_cast<double>(random.integer(0, (1 << digits) - 1));
  const auto exponent = static_cast<int>(random.integer(least, most));
  const double sign = random.integer(0, 1) == 0 ? 1 : -1;
  if (random.integer(0, 15) == 0) return 0;
  return static_cast<float>(sign * std::ldexp(1 + std::ldexp(fraction, -digits), exponent));
}

TEST(FusedSum, AllSumsOfAProductFollowTheRule) {
  base::Random random(3);
  for (const auto& [a, b, digits] : {std::tuple{Operand::BF16, Operand::BF16, 7},
                                     {Operand::F16, Operand::F16, 10},
                                     {Operand::TF32, Operand::TF32, 10},
                                     {Operand::F8E4M3, Operand::F8E4M3, 3},
                                     {Operand::F8E5M2, Operand::F8E5M2, 2},
                                     {Operand::F8E4M3, Operand::F8E5M2, 2},
                                     {Operand::F8E5M2, Operand::F8E4M3, 2}}) {
    for (const int spread : {0, 3, 6, 14, 30, 60}) {
      const int lowest = std::max({-spread, least_exponent(a), least_exponent(b)});
      const int highest = std::min(spread, depth_of(a) == 32 ? 8 : 15);
      const auto f = zeros(a, b, 24);
      for (float& x : f->a) x = random_number(random, digits, lowest, highest);
      for (float& x : f->b) x = random_number(random, digits, lowest, highest);
      std::vector<float> sums(static_cast<size_t>(kRows * f->n));
      for (float& x : sums) x = random_number(random, 23, -2 * spread, spread);
      const std::vector<float> before = sums;
      add_products(*f, sums.data());
      for (int i = 0; i < kRows * f->n; ++i) {
        const auto at = static_cast<size_t>(i);
        const float expected = sum_of_integers(*f, i / f->n, i % f->n, before[at]);
        ASSERT_EQ(bits_of_float(sums[at]), bits_of_float(expected)) << spread << " " << i;
        ASSERT_EQ(bits_of_float(fused_sum(*f, i / f->n, i % f->n, before[at])),
                  bits_of_float(expected));
      }
    }
  }
}

// Positive numbers, sums over 4096: what is lost adds up. `flush` is after how many elements along
// k the accumulator is added to an f32 sum and begins anew.
double error_of_long_sums(Operand operand, int digits, int flush) {
  constexpr int kLength = 4096;
  base::Random random(9);
  const auto f = zeros(operand, operand, 8);
  std::vector<float> part(kRows * 8);
  std::vector<float> total(kRows * 8);
  std::vector<double> exact(kRows * 8);
  for (int k = 0; k < kLength; k += f->depth()) {
    for (float& x : f->a) x = std::abs(random_number(random, digits, -4, 0));
    for (float& x : f->b) x = std::abs(random_number(random, digits, -4, 0));
    add_products(*f, part.data());
    for (size_t i = 0; i < exact.size(); ++i) {
      for (int j = 0; j < f->depth(); ++j) {
        const size_t row = i / 8 * static_cast<size_t>(f->depth());
        exact[i] += double{f->a[row + static_cast<size_t>(j)]} *
                    double{f->b[static_cast<size_t>(j) * 8 + i % 8]};
      }
    }
    if ((k + f->depth()) % flush != 0) continue;
    for (size_t i = 0; i < part.size(); ++i) total[i] += std::exchange(part[i], 0.f);
  }
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(total[i] - exact[i], 2);
    size += std::pow(exact[i], 2);
  }
  return std::sqrt(difference / size);
}

TEST(FusedSum, LongSumsOfEightBitsNeedAFlush) {
  EXPECT_GT(error_of_long_sums(Operand::F8E4M3, 3, 4096), 0.03);
  EXPECT_LT(error_of_long_sums(Operand::F8E4M3, 3, 4096), 0.12);
  EXPECT_GT(error_of_long_sums(Operand::F8E4M3, 3, 128), 1e-4);
  EXPECT_LT(error_of_long_sums(Operand::F8E4M3, 3, 128), 1e-3);
  EXPECT_GT(error_of_long_sums(Operand::BF16, 7, 4096), 1e-6);
  EXPECT_LT(error_of_long_sums(Operand::BF16, 7, 4096), 3e-5);
}

}  // namespace
}  // namespace nautilus::emulator

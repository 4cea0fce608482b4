// SPDX-License-Identifier: Apache-2.0
//
// The narrow formats are small enough to test completely: every pattern, and rounding of the points
// between neighbouring values. The right answer follows from the patterns alone.
#include "expr/dtype.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace nautilus::expr {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr DType kNarrow[] = {DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16};

DType dtype_at(int i) { return static_cast<DType>(i); }

// Identical as doubles: tells zeros of different sign apart.
bool same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

TEST(DType, NamesRoundTrip) {
  const std::vector<std::string> names = dtype_names();
  ASSERT_EQ(names.size(), static_cast<size_t>(kDTypeCount));
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_EQ(names[static_cast<size_t>(i)], name(dtype_at(i)));
    EXPECT_EQ(parse_dtype(name(dtype_at(i))), dtype_at(i));
  }
  EXPECT_EQ(name(DType::F8E4M3), "f8e4m3");
  EXPECT_EQ(parse_dtype("F32"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, Facts) {
  EXPECT_FALSE(is_int(DType::Bool));
  EXPECT_FALSE(is_float(DType::Bool));
  EXPECT_TRUE(is_int(DType::U8));
  EXPECT_TRUE(is_float(DType::F8E5M2));
  EXPECT_EQ(bytes(DType::BF16), 2);
  EXPECT_EQ(significand_bits(DType::F8E4M3), 4);
  EXPECT_EQ(significand_bits(DType::F8E5M2), 3);
  EXPECT_EQ(significand_bits(DType::F16), 11);
  EXPECT_EQ(significand_bits(DType::BF16), 8);
  EXPECT_EQ(significand_bits(DType::F32), 24);
  EXPECT_EQ(significand_bits(DType::F64), 53);
  EXPECT_EQ(significand_bits(DType::I32), 0);
  EXPECT_EQ(unit_roundoff(DType::F16), std::ldexp(1.0, -11));
  EXPECT_EQ(unit_roundoff(DType::F64), std::numeric_limits<double>::epsilon() / 2);
  EXPECT_EQ(unit_roundoff(DType::I64), 0.0);
  EXPECT_EQ(max_finite(DType::F32), std::numeric_limits<float>::max());
  EXPECT_EQ(compute_dtype(DType::BF16), DType::F32);
  EXPECT_EQ(compute_dtype(DType::U8), DType::I32);
  EXPECT_EQ(compute_dtype(DType::I64), DType::I64);
  EXPECT_EQ(compute_dtype(DType::Bool), DType::Bool);
}

TEST(DType, DecodeThenEncodeIsTheIdentity) {
  for (DType type : kNarrow) {
    const uint64_t patterns = uint64_t{1} << (bytes(type) * 8);
    uint64_t finite = 0;
    for (uint64_t bits = 0; bits < patterns; ++bits) {
      const double value = decode(type, bits);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(decode(type, encode(type, value)))) << name(type) << ' ' << bits;
        continue;
      }
      if (std::isinf(value) && type == DType::F8E5M2) {
        ASSERT_EQ(encode(type, value), bits - 1);
        continue;
      }
      finite += std::isfinite(value) ? 1 : 0;
      ASSERT_EQ(encode(type, value), bits) << name(type) << ' ' << value;
      ASSERT_TRUE(same(round_to(type, value), value)) << name(type) << ' ' << value;
    }
    const uint64_t expected = type == DType::F8E4M3   ? 254
                              : type == DType::F8E5M2 ? 248
                              : type == DType::F16    ? 63488
                                                      : 65280;
    EXPECT_EQ(finite, expected) << name(type);
  }
}

TEST(DType, KnownPatterns) {
  EXPECT_EQ(decode(DType::F8E4M3, 0x7E), 448.0);
  EXPECT_EQ(decode(DType::F8E4M3, 0x01), std::ldexp(1.0, -9));
  EXPECT_EQ(decode(DType::F8E5M2, 0x7B), 57344.0);
  EXPECT_EQ(decode(DType::F8E5M2, 0x7C), kInf);
  EXPECT_EQ(decode(DType::F16, 0x3C00), 1.0);
  EXPECT_EQ(decode(DType::F16, 0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(decode(DType::BF16, 0x3F80), 1.0);
  EXPECT_EQ(decode(DType::BF16, 0xFF80), -kInf);
  EXPECT_EQ(encode(DType::F8E4M3, kNan), 0x7Fu);
  EXPECT_EQ(encode(DType::F8E5M2, kNan), 0x7Eu);
  EXPECT_EQ(encode(DType::F16, kNan), 0x7E00u);
  EXPECT_EQ(encode(DType::BF16, -kNan), 0x7FC0u);
  EXPECT_EQ(encode(DType::F32, kNan), 0x7FC00000u);
  EXPECT_EQ(encode(DType::F64, kNan), 0x7FF8000000000000u);
  EXPECT_EQ(encode(DType::F64, -kInf), 0xFFF0000000000000u);
  EXPECT_EQ(encode(DType::F64, 5e-324), 1u);
  EXPECT_EQ(encode(DType::F32, kInf), 0x7F800000u);
}

TEST(DType, RoundsToNearestEvenBetweenAllNeighbours) {
  for (DType type : kNarrow) {
    for (uint64_t bits = 0; decode(type, bits) < max_finite(type); ++bits) {
      const double low = decode(type, bits), high = decode(type, bits + 1);
      const double middle = (low + high) / 2;
      const double even = bits % 2 == 0 ? low : high;
      for (double sign : {1.0, -1.0}) {
        ASSERT_TRUE(same(round_to(type, sign * middle), sign * even)) << name(type) << ' ' << bits;
        ASSERT_TRUE(same(round_to(type, sign * std::nextafter(middle, 0.0)), sign * low));
        ASSERT_TRUE(same(round_to(type, sign * std::nextafter(middle, kInf)), sign * high));
      }
    }
  }
}

TEST(DType, Overflow) {
  EXPECT_EQ(round_to(DType::F16, std::nextafter(65520.0, 0.0)), 65504.0);
  EXPECT_EQ(round_to(DType::F16, 65520.0), kInf);
  EXPECT_EQ(round_to(DType::F16, -1e300), -kInf);
  const double bf16_limit = 0x1.FFp127;
  EXPECT_EQ(round_to(DType::BF16, std::nextafter(bf16_limit, 0.0)), 0x1.FEp127);
  EXPECT_EQ(round_to(DType::BF16, bf16_limit), kInf);
  EXPECT_EQ(round_to(DType::F32, 1e300), kInf);
  for (double large : {449.0, 464.0, 465.0, 1e5, 1e300, kInf}) {
    EXPECT_EQ(round_to(DType::F8E4M3, large), 448.0);
    EXPECT_EQ(round_to(DType::F8E4M3, -large), -448.0);
  }
  for (double large : {57345.0, 61440.0, 65536.0, 1e300, kInf}) {
    EXPECT_EQ(round_to(DType::F8E5M2, large), 57344.0);
    EXPECT_EQ(round_to(DType::F8E5M2, -large), -57344.0);
  }
  for (int i = 0; i < kDTypeCount; ++i) {
    if (is_float(dtype_at(i))) {
      EXPECT_TRUE(std::isnan(round_to(dtype_at(i), kNan)));
    }
  }
}

TEST(DType, TinyValuesKeepTheirSign) {
  for (DType type : kNarrow) {
    for (double tiny : {0.0, 5e-324, 1e-310, 1e-60}) {
      EXPECT_TRUE(same(round_to(type, tiny), 0.0));
      EXPECT_TRUE(same(round_to(type, -tiny), -0.0));
      EXPECT_EQ(encode(type, -tiny), uint64_t{1} << (bytes(type) * 8 - 1));
    }
  }
}

TEST(DType, Float32MatchesTheHardware) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000000; ++i) {
    uint64_t bits = random();
    // Half of the exponents near the range of f32, with its subnormals.
    if (i % 2 == 0) bits = (bits & 0x800FFFFFFFFFFFFF) | (1023 - 160 + bits % 300) << 52;
    // And some exact ties.
    if (i % 4 == 0) bits = (bits >> 28 << 28) | uint64_t{1} << 28;
    const double value = std::bit_cast<double>(bits);
    if (std::isnan(value)) continue;
    const float expected = static_cast<float>(value);
    ASSERT_TRUE(same(round_to(DType::F32, value), static_cast<double>(expected)));
    ASSERT_EQ(encode(DType::F32, value), std::bit_cast<uint32_t>(expected));
    ASSERT_TRUE(same(decode(DType::F32, std::bit_cast<uint32_t>(expected)), expected));
    ASSERT_EQ(encode(DType::F64, value), bits);
    ASSERT_TRUE(same(decode(DType::F64, bits), value));
  }
}

TEST(DType, HoldsEveryValue) {
  EXPECT_TRUE(holds_every_value(DType::F32, DType::BF16));
  EXPECT_TRUE(holds_every_value(DType::F64, DType::I32));
  EXPECT_FALSE(holds_every_value(DType::F32, DType::I32));
  EXPECT_FALSE(holds_every_value(DType::F64, DType::I64));
  EXPECT_FALSE(holds_every_value(DType::F16, DType::BF16));
  EXPECT_FALSE(holds_every_value(DType::BF16, DType::F16));
  EXPECT_TRUE(holds_every_value(DType::F16, DType::F8E5M2));
  EXPECT_FALSE(holds_every_value(DType::F8E5M2, DType::F8E4M3));
  EXPECT_TRUE(holds_every_value(DType::BF16, DType::U8));
  EXPECT_FALSE(holds_every_value(DType::I8, DType::U8));
  EXPECT_FALSE(holds_every_value(DType::I64, DType::F8E4M3));
  EXPECT_FALSE(holds_every_value(DType::Bool, DType::U8));

  // The claims about sources of at most 16 bits, value by value.
  for (int s = 0; s < kDTypeCount; ++s) {
    for (int t = 0; t < kDTypeCount; ++t) {
      const DType source = dtype_at(s), target = dtype_at(t);
      if (bytes(source) > 2 || source == target) continue;
      bool all = true;
      if (is_float(source)) {
        all = is_float(target);
        for (uint64_t b = 0; all && b < uint64_t{1} << (bytes(source) * 8); ++b) {
          const double value = decode(source, b);
          if (std::isinf(value)) continue;
          all = same(round_to(target, value), value);
        }
      } else {
        for (int64_t v = int_min(source); v <= int_max(source); ++v) {
          const double value = static_cast<double>(v);
          all = all &&
                (is_float(target) ? round_to(target, value) == value : wrap_to(target, v) == v);
        }
      }
      EXPECT_EQ(holds_every_value(target, source), all) << name(target) << ' ' << name(source);
    }
  }
}

TEST(DType, WrapTo) {
  EXPECT_EQ(wrap_to(DType::I8, 128), -128);
  EXPECT_EQ(wrap_to(DType::I8, -129), 127);
  EXPECT_EQ(wrap_to(DType::U8, -1), 255);
  EXPECT_EQ(wrap_to(DType::I32, int64_t{1} << 31), int_min(DType::I32));
  EXPECT_EQ(wrap_to(DType::I64, int_min(DType::I64)), int_min(DType::I64));
  EXPECT_EQ(wrap_to(DType::Bool, -7), 1);
  EXPECT_EQ(wrap_to(DType::Bool, 0), 0);
}

TEST(DType, FloatToInt) {
  for (DType type : {DType::I8, DType::U8, DType::I32, DType::I64}) {
    EXPECT_EQ(float_to_int(type, kNan), 0);
    EXPECT_EQ(float_to_int(type, kInf), int_max(type));
    EXPECT_EQ(float_to_int(type, -kInf), int_min(type));
    EXPECT_EQ(float_to_int(type, 2.9), 2);
    EXPECT_EQ(float_to_int(type, -0.9), 0);
  }
  EXPECT_EQ(float_to_int(DType::I8, -128.9), -128);
  EXPECT_EQ(float_to_int(DType::I8, 127.9), 127);
  EXPECT_EQ(float_to_int(DType::I8, 128.0), 127);
  EXPECT_EQ(float_to_int(DType::U8, -5.0), 0);
  EXPECT_EQ(float_to_int(DType::I64, 0x1p63), int_max(DType::I64));
  EXPECT_EQ(float_to_int(DType::I64, -0x1p63), int_min(DType::I64));
  EXPECT_EQ(float_to_int(DType::I64, std::nextafter(0x1p63, 0.0)), 0x7FFFFFFFFFFFFC00);
  EXPECT_EQ(float_to_int(DType::Bool, 0.5), 1);
  EXPECT_EQ(float_to_int(DType::Bool, kNan), 1);
  EXPECT_EQ(float_to_int(DType::Bool, -0.0), 0);
}

}  // namespace
}  // namespace nautilus::expr

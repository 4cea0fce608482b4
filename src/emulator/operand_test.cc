// SPDX-License-Identifier: Apache-2.0
#include "emulator/operand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "emulator/half.h"

namespace nautilus::emulator {
namespace {

// The numbers of elements as a piece after the other gives them.
template <class Bits>
std::vector<float> read_all(Operand operand, const std::vector<Bits>& elements) {
  std::vector<float> out(elements.size());
  const size_t piece = 16 / sizeof(Bits);
  for (size_t i = 0; i < elements.size(); i += piece) {
    read_piece(reinterpret_cast<const unsigned char*>(elements.data() + i), operand, &out[i], 1);
  }
  return out;
}

void expect_same(float actual, float expected, uint32_t bits) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << bits;
  } else {
    EXPECT_EQ(bits_of_float(actual), bits_of_float(expected)) << bits;
  }
}

float f8(uint32_t bits, int digits, int bias) {
  const int field = static_cast<int>(bits & 0x7fu) >> digits;
  const int fraction = static_cast<int>(bits) & ((1 << digits) - 1);
  const double size = field == 0 ? std::ldexp(fraction, 1 - bias - digits)
                                 : std::ldexp((1 << digits) + fraction, field - bias - digits);
  return static_cast<float>((bits & 0x80u) != 0 ? -size : size);
}

TEST(Operand, EightBitFloatsAreTheirFormulas) {
  std::vector<uint8_t> all(256);
  for (uint32_t bits = 0; bits < 256; ++bits) all[bits] = static_cast<uint8_t>(bits);
  const std::vector<float> e4m3 = read_all(Operand::F8E4M3, all);
  const std::vector<float> e5m2 = read_all(Operand::F8E5M2, all);
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const uint32_t size = bits & 0x7fu;
    expect_same(e4m3[bits], size == 0x7f ? NAN : f8(bits, 3, 7), bits);
    const float infinity = size == bits ? INFINITY : -INFINITY;
    expect_same(e5m2[bits], size > 0x7c ? NAN : size == 0x7c ? infinity : f8(bits, 2, 15), bits);
  }
  EXPECT_EQ(e4m3[0x7e], 448);
  EXPECT_EQ(e4m3[0x01], 0x1p-9f);
  EXPECT_EQ(e5m2[0x7b], 57344);
  EXPECT_EQ(e5m2[0x81], -0x1p-16f);
}

TEST(Operand, IntegersAreTheirValues) {
  std::vector<uint8_t> all(256);
  for (uint32_t bits = 0; bits < 256; ++bits) all[bits] = static_cast<uint8_t>(bits);
  const std::vector<float> i8 = read_all(Operand::I8, all);
  const std::vector<float> u8 = read_all(Operand::U8, all);
  for (int x = 0; x < 256; ++x) {
    EXPECT_EQ(i8[static_cast<size_t>(x)], x < 128 ? x : x - 256);
    EXPECT_EQ(u8[static_cast<size_t>(x)], x);
  }
}

TEST(Operand, SixteenBitFloatsAreThoseOfHalf) {
  std::vector<uint16_t> all(0x10000);
  for (uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = static_cast<uint16_t>(bits);
  const std::vector<float> bf16 = read_all(Operand::BF16, all);
  const std::vector<float> f16 = read_all(Operand::F16, all);
  for (uint32_t bits = 0; bits < all.size(); ++bits) {
    expect_same(bf16[bits], bf16_value(all[bits]), bits);
    expect_same(f16[bits], f16_value(all[bits]), bits);
  }
}

TEST(Operand, TheUnitDoesNotSeeTheLastDigitsOfF32) {
  const std::vector<uint32_t> in = {0x3f801fff, 0xbf802000, 0x00001fff, 0x7f801fff,
                                    0x7f803fff, 0x00003001, 0xffffffff, 0x80000000};
  const std::vector<float> out = read_all(Operand::TF32, in);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -1 - 0x1p-10f);
  EXPECT_EQ(bits_of_float(out[2]), 0u);
  EXPECT_EQ(out[3], INFINITY);  // a NaN of which nothing is left
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(bits_of_float(out[5]), 0x2000u);
  EXPECT_TRUE(std::isnan(out[6]));
  EXPECT_EQ(bits_of_float(out[7]), 0x80000000u);
}

TEST(Operand, PiecesGoToPlacesApart) {
  const std::vector<uint8_t> in = {0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c, 0x4e, 0x50,
                                   0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58};
  std::vector<float> out(16 * 3, -1.f);
  read_piece(in.data(), Operand::F8E4M3, out.data(), 3);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[3 * i], static_cast<float>(i + 1));
    EXPECT_EQ(out[3 * i + 1], -1);
  }
}

TEST(Operand, EveryInstructionIsThirtyTwoBytesDeep) {
  EXPECT_EQ(depth_of(Operand::BF16), 16);
  EXPECT_EQ(depth_of(Operand::F16), 16);
  EXPECT_EQ(depth_of(Operand::TF32), 8);
  EXPECT_EQ(depth_of(Operand::F8E4M3), 32);
  EXPECT_EQ(depth_of(Operand::F8E5M2), 32);
  EXPECT_EQ(depth_of(Operand::I8), 32);
  EXPECT_EQ(depth_of(Operand::U8), 32);
}

}  // namespace
}  // namespace nautilus::emulator

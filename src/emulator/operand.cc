// SPDX-License-Identifier: Apache-2.0
#include "emulator/operand.h"

#include <array>
#include <cstring>
#include <limits>

#include "emulator/half.h"

namespace nautilus::emulator {
namespace {

typedef uint16_t Halves __attribute__((vector_size(16)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(32)));

// A float of 8 bits, the low `digits` of which are a fraction. Without infinities, only all ones
// are a NaN.
constexpr float f8_value(int bits, int digits, int bias, bool has_infinity) {
  const int exponent = (bits & 0x7f) >> digits;
  const int fraction = bits & ((1 << digits) - 1);
  const int largest = 0x7f >> digits;
  float size = static_cast<float>(exponent == 0 ? fraction : fraction | 1 << digits);
  for (int e = (exponent == 0 ? 1 : exponent) - bias - digits; e != 0; e += e < 0 ? 1 : -1) {
    size *= e < 0 ? 0.5f : 2.f;
  }
  if (has_infinity && exponent == largest) {
    size = fraction == 0 ? std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  } else if ((bits & 0x7f) == 0x7f) {
    size = std::numeric_limits<float>::quiet_NaN();
  }
  return (bits & 0x80) != 0 ? -size : size;
}

constexpr std::array<float, 256> f8_values(int digits, int bias, bool has_infinity) {
  std::array<float, 256> out = {};
  for (int bits = 0; bits < 256; ++bits) {
    out[static_cast<size_t>(bits)] = f8_value(bits, digits, bias, has_infinity);
  }
  return out;
}

constexpr std::array<float, 256> kF8E4M3 = f8_values(3, 7, false);
constexpr std::array<float, 256> kF8E5M2 = f8_values(2, 15, true);

void put(const Floats& values, float* to, int stride) {
  for (int i = 0; i < 8; ++i) to[i * stride] = values[i];
}

void read_bf16(const unsigned char* from, float* to, int stride) {
  Halves bits;
  std::memcpy(&bits, from, 16);
  put((Floats)(__builtin_convertvector(bits, Words) << 16), to, stride);
}

// As f16_value, eight at a time.
void read_f16(const unsigned char* from, float* to, int stride) {
  Halves bits;
  std::memcpy(&bits, from, 16);
  const Words wide = __builtin_convertvector(bits, Words);
  const Words moved = (wide & 0x7fffu) << 13;
  const Words finite = (Words)((Floats)moved * 0x1p112f);
  const Words is_infinite = (Words)(moved >= 0x0f800000u);
  const Words magnitude = (finite & ~is_infinite) | ((moved | 0x7f800000u) & is_infinite);
  put((Floats)(magnitude | (wide & 0x8000u) << 16), to, stride);
}

// The unit does not see the last 13 bits.
void read_tf32(const unsigned char* from, float* to, int stride) {
  for (int i = 0; i < 4; ++i) {
    uint32_t bits;
    std::memcpy(&bits, from + 4 * i, 4);
    to[i * stride] = float_of_bits(bits & 0xffffe000u);
  }
}

template <class Integer>
void read_integers(const unsigned char* from, float* to, int stride) {
  for (int i = 0; i < 16; ++i) to[i * stride] = static_cast<float>(static_cast<Integer>(from[i]));
}

void read_f8(const unsigned char* from, const std::array<float, 256>& values, float* to,
             int stride) {
  for (int i = 0; i < 16; ++i) to[i * stride] = values[from[i]];
}

}  // namespace

int element_bytes(Operand operand) {
  switch (operand) {
    case Operand::BF16:
    case Operand::F16:
      return 2;
    case Operand::TF32:
      return 4;
    case Operand::F8E4M3:
    case Operand::F8E5M2:
    case Operand::I8:
    case Operand::U8:
      return 1;
  }
  return 0;
}

bool is_integer(Operand operand) { return operand == Operand::I8 || operand == Operand::U8; }

int least_exponent(Operand operand) {
  switch (operand) {
    case Operand::BF16:
    case Operand::TF32:
      return -126;
    case Operand::F16:
    case Operand::F8E5M2:
      return -14;
    case Operand::F8E4M3:
      return -6;
    case Operand::I8:
    case Operand::U8:
      break;
  }
  return 0;
}

SumRule sum_rule(Operand operand) {
  return element_bytes(operand) == 1 ? SumRule{13, 13} : SumRule{25, 23};
}

void read_piece(const unsigned char* from, Operand operand, float* to, int stride) {
  switch (operand) {
    case Operand::BF16:
      return read_bf16(from, to, stride);
    case Operand::F16:
      return read_f16(from, to, stride);
    case Operand::TF32:
      return read_tf32(from, to, stride);
    case Operand::F8E4M3:
      return read_f8(from, kF8E4M3, to, stride);
    case Operand::F8E5M2:
      return read_f8(from, kF8E5M2, to, stride);
    case Operand::I8:
      return read_integers<int8_t>(from, to, stride);
    case Operand::U8:
      return read_integers<uint8_t>(from, to, stride);
  }
}

}  // namespace nautilus::emulator

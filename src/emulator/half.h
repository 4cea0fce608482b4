// SPDX-License-Identifier: Apache-2.0
// 16-bit floats as the hardware converts them.
#pragma once

#include <cstdint>
#include <cstring>

namespace nautilus::emulator {

inline float float_of_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline uint32_t bits_of_float(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float bf16_value(uint16_t bits) { return float_of_bits(uint32_t{bits} << 16); }

inline float f16_value(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return float_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // The exponent is moved by a product, which also makes subnormal halves normal floats.
  return float_of_bits(sign | magnitude << 13) * 0x1p112f;
}

// To nearest, ties to even; NaN becomes 0x7fff.
inline uint16_t f16_bits(float x) {
  const uint32_t bits = bits_of_float(x);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded.
    const uint32_t rounded = bits_of_float(float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    return static_cast<uint16_t>(sign | rounded);
  }
  const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
}

}  // namespace nautilus::emulator

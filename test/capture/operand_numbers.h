// SPDX-License-Identifier: Apache-2.0
//
// Operands for the capture of a Hopper GPU (operand_capture.cu) and for the test that puts the same
// questions to the emulator: types, bits of numbers, products. Nothing but the standard library, in
// C++17.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace nautilus::capture {

constexpr int kTile = 8192;  // bytes of an operand: 64 rows of 128

struct Type {
  const char* name;
  int bytes;
  int digits;  // of the fraction
  int bias;
  int largest;  // exponent field of a finite number
};
constexpr Type kBf16 = {"bf16", 2, 7, 127, 254};
constexpr Type kF16 = {"f16", 2, 10, 15, 30};
constexpr Type kTf32 = {"tf32", 4, 23, 127, 254};
constexpr Type kE4m3 = {"e4m3", 1, 3, 7, 15};
constexpr Type kE5m2 = {"e5m2", 1, 2, 15, 30};

struct Kind {
  Type a, b;
  const char* name;
  int term_bits;  // where the unit is expected to truncate: cases lie around it

  int depth() const { return 32 / a.bytes; }
};
constexpr int kKindCount = 7;
constexpr Kind kKinds[kKindCount] = {
    {kBf16, kBf16, "bf16", 25},      {kF16, kF16, "f16", 25},    {kTf32, kTf32, "tf32", 25},
    {kE4m3, kE4m3, "e4m3", 13},      {kE5m2, kE5m2, "e5m2", 13}, {kE4m3, kE5m2, "e4m3_e5m2", 13},
    {kE5m2, kE4m3, "e5m2_e4m3", 13},
};

// significand * 2^exponent, which the type must hold exactly.
inline uint32_t bits_of(const Type& type, int significand, int exponent) {
  const uint32_t sign = significand < 0 ? 1u << (8 * type.bytes - 1) : 0;
  uint32_t size = static_cast<uint32_t>(significand < 0 ? -significand : significand);
  if (size == 0) return sign;
  int unit = exponent;  // of the last bit of `size`
  while (size >> type.digits == 0 && unit > 1 - type.bias - type.digits) {
    size <<= 1;
    --unit;
  }
  while (size % 2 == 0 && (size >> (type.digits + 1) != 0 || unit < 1 - type.bias - type.digits)) {
    size >>= 1;
    ++unit;
  }
  const int field = size >> type.digits == 0 ? 0 : unit + type.bias + type.digits;
  const bool is_held = size >> (type.digits + 1) == 0 && unit >= 1 - type.bias - type.digits &&
                       field >= 0 && field <= type.largest &&
                       (field != 0 || unit == 1 - type.bias - type.digits);
  if (!is_held) {
    std::fprintf(stderr, "%s cannot hold %d * 2^%d\n", type.name, significand, exponent);
    std::exit(1);
  }
  return sign | static_cast<uint32_t>(field) << type.digits | (size & ((1u << type.digits) - 1));
}

inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

// What one product is made of: A's tile, then B's, as they lie in shared memory; the descriptors
// but for the addresses; the accumulator by rows, which becomes the result.
struct Product {
  unsigned char smem[2 * kTile];
  uint64_t a, b;
  int a_start, b_start;  // bytes
  float sums[64 * 64];
};

// The byte in a tile of 64 rows of 128 bytes, cut into panels of `span` bytes that are swizzled:
// K-major.
inline int tile_byte(int span, int row, int byte) {
  const int linear = byte / span * 64 * span + row * span + byte % span;
  return span == 128 ? linear ^ (linear >> 7 & 7) << 4 : linear ^ (linear >> 7 & 3) << 4;
}

// The fields of a descriptor behind the address: leading offset 16, stride 8 rows, the swizzle.
inline uint64_t fields(int span) {
  return uint64_t{1} << 16 | static_cast<uint64_t>(8 * span / 16) << 32 |
         static_cast<uint64_t>(span == 128 ? 1 : 2) << 62;
}

inline void put_element(Product& p, int tile, int row, int k, int bytes, uint32_t bits) {
  std::memcpy(p.smem + tile + tile_byte(128, row, k * bytes), &bits, static_cast<size_t>(bytes));
}

inline void prepare(Product& p) {
  p = {};
  p.a = p.b = fields(128);
  p.b_start = kTile;
}

// The numbers of a random product. A state s begins as SEED; draw() is s = s * 1664525 + 1013904223
// (32 bits), then s >>
// 8. An element is a draw r and a draw q: sign r % 2, fraction the lowest digits of r / 2, exponent
// field the bias + q % (2 * SPREAD + 1) - SPREAD, moved into what finite numbers have. A NaN of
// e4m3 loses the last bit of its fraction. Elements of C are f32 whose SPREAD is twice as large, at
// most 126.
class Numbers {
 public:
  Numbers(uint32_t seed, int spread) : state_(seed), spread_(spread) {}

  uint32_t element(const Type& type) { return element(type, spread_); }
  uint32_t sum() { return element(kTf32, 2 * spread_ < 126 ? 2 * spread_ : 126); }

 private:
  uint32_t draw() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  uint32_t element(const Type& type, int spread) {
    const uint32_t r = draw();
    int field =
        type.bias + static_cast<int>(draw() % static_cast<uint32_t>(2 * spread + 1)) - spread;
    if (field < 0) field = 0;
    if (field > type.largest) field = type.largest;
    uint32_t size =
        static_cast<uint32_t>(field) << type.digits | (r / 2 & ((1u << type.digits) - 1));
    if (type.digits == 3 && size == 0x7f) size = 0x7e;
    return size | r % 2 << (8 * type.bytes - 1);
  }

  uint32_t state_;
  int spread_;
};

}  // namespace nautilus::capture

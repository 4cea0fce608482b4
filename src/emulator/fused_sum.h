// SPDX-License-Identifier: Apache-2.0
//
// Sums as the matrix unit forms them. Sums of integers are exact, and wrap around. Of floats, one
// instruction adds the accumulator c and its k exact products as one sum: E is the largest exponent
// among c and the products, where the exponent of a product is the sum of its factors' exponents;
// every term is truncated toward zero to a multiple of 2^(E - F); the terms are added exactly; the
// sum is truncated toward zero to f fraction bits. F and f are sum_rule's. A subnormal number has
// the exponent of the smallest normal one of its type; terms that are 0 do not count, but E is at
// least that of a subnormal c. A sum with a NaN, or with infinities of both signs, is the NaN
// 0x7fffffff.
//
// This is less exact than a chain of f32 additions: what is small beside the accumulator is lost in
// part, always toward zero. A kernel that leaves long sums of 8-bit floats in the accumulator is
// therefore wrong here as it is on the device.
#pragma once

#include "emulator/operand.h"

namespace nautilus::emulator {

inline constexpr int kRows = 16;  // of A, those of one warp
inline constexpr int kMaxN = 256;

// What one instruction multiplies, of one warp: numbers as read_piece gives them.
struct Factors {
  Operand a_operand = Operand::BF16;
  Operand b_operand = Operand::BF16;  // of as many bytes
  int n = 0;                          // a multiple of 8
  float a[kRows * kMaxDepth];         // kRows x depth
  float b[kMaxDepth * kMaxN];         // depth x n

  int depth() const { return depth_of(a_operand); }
};

// sums (kRows x n) += a b, of floats and of integers.
void add_products(const Factors& factors, float* sums);
void add_products(const Factors& factors, int32_t* sums);

// One element of the same, by the rule word for word: c and row `row` of a times column `column` of
// b. It serves the few sums that the other one cannot form, and tests.
float fused_sum(const Factors& factors, int row, int column, float c);

}  // namespace nautilus::emulator

// SPDX-License-Identifier: Apache-2.0
//
// Eight columns at a time. All terms of a sum are scaled by 2^(F - E), which makes the truncation a
// conversion to integers, and sums of integers are exact. That works where products and scales are
// floats without loss; sums with infinities, NaN or exponents near the ends of f32 are "hard" and
// are done one by one.
#include "emulator/fused_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "emulator/half.h"

namespace nautilus::emulator {
namespace {

constexpr int kLeastFloatExponent = -126;

// Exponents of what has none, so far from those of numbers that sums of two still tell what they
// are made of: one with an infinity or a NaN is above kLargestEasy, any other one with a zero is
// below kZeroTerm.
constexpr int16_t kZero = -2000;
constexpr int16_t kInfinite = 8000;
constexpr int16_t kZeroTerm = -1000;
constexpr int16_t kLeastEasy = -90;
constexpr int16_t kLargestEasy = 125;

constexpr int kColumns = 8;  // N is a multiple of 8, so no product has a remainder
constexpr int kBlock = 4;    // rows that share what is read of B

// Passed by reference only: how a vector is passed by value depends on the instructions there are.
typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef int16_t Shorts __attribute__((vector_size(16)));
typedef double Doubles __attribute__((vector_size(64)));
typedef int64_t Longs __attribute__((vector_size(64)));

// What add_products is made of is compiled twice, for two sets of instructions.
#define INLINE inline __attribute__((always_inline))

struct Exponents {
  int16_t a[kRows * kMaxDepth * kColumns];  // each 8 times, as it meets 8 columns of B
  int16_t b[kMaxDepth * kMaxN];
};

// kBlock rows of kColumns sums.
struct Block {
  Floats sums[kBlock];
  Shorts largest[kBlock];  // E
};

// Numbers in memory have no vector's alignment.
INLINE void load(const float* from, Floats& out) { std::memcpy(&out, from, sizeof out); }
INLINE void load(const int16_t* from, Shorts& out) { std::memcpy(&out, from, sizeof out); }
INLINE void store(const Floats& x, float* to) { std::memcpy(to, &x, sizeof x); }
INLINE void store(const Shorts& x, int16_t* to) { std::memcpy(to, &x, sizeof x); }

INLINE void find_exponents(const Floats& x, int least, Shorts& out) {
  const Ints magnitude = (Ints)x & 0x7fffffff;
  const Ints field = magnitude >> 23;
  const Shorts lowest = Shorts{} + static_cast<int16_t>(least);
  const Shorts exponent = __builtin_convertvector(field, Shorts) - static_cast<int16_t>(127);
  const Shorts is_zero = __builtin_convertvector(magnitude == 0, Shorts);
  const Shorts is_infinite = __builtin_convertvector(field == 255, Shorts);
  out = exponent > lowest ? exponent : lowest;
  out = is_zero ? Shorts{} + kZero : is_infinite ? Shorts{} + kInfinite : out;
}

INLINE void find_exponents(const Factors& f, Exponents& out) {
  const int a_least = least_exponent(f.a_operand);
  const int b_least = least_exponent(f.b_operand);
  Floats x;
  Shorts e;
  for (int i = 0; i < kRows * f.depth(); i += kColumns) {
    load(f.a + i, x);
    find_exponents(x, a_least, e);
    for (int j = 0; j < kColumns; ++j) store(Shorts{} + e[j], out.a + kColumns * (i + j));
  }
  for (int i = 0; i < f.depth() * f.n; i += kColumns) {
    load(f.b + i, x);
    find_exponents(x, b_least, e);
    store(e, out.b + i);
  }
}

INLINE void find_largest(const Factors& f, const Exponents& exponents, int row, int column,
                         Block& block) {
  const int depth = f.depth();
#pragma GCC unroll 4
  for (int r = 0; r < kBlock; ++r) {
    find_exponents(block.sums[r], kLeastFloatExponent, block.largest[r]);
  }
  for (int k = 0; k < depth; ++k) {
    Shorts b;
    load(exponents.b + k * f.n + column, b);
#pragma GCC unroll 4
    for (int r = 0; r < kBlock; ++r) {
      Shorts e;
      load(exponents.a + kColumns * ((row + r) * depth + k), e);
      e += b;
      block.largest[r] = e > block.largest[r] ? e : block.largest[r];
    }
  }
}

// Those of a sum from k = first up to before `end`.
struct TermRange {
  int first;
  int end;
};

INLINE void add_terms(const Factors& f, int row, int column, TermRange terms,
                      const Floats (&scale)[kBlock], Words (&sum)[kBlock]) {
  const float* a = f.a + row * f.depth();
  for (int k = terms.first; k < terms.end; ++k) {
    Floats b;
    load(f.b + k * f.n + column, b);
#pragma GCC unroll 4
    for (int r = 0; r < kBlock; ++r) {
      const Floats term = a[r * f.depth() + k] * b * scale[r];
      sum[r] += (Words) __builtin_convertvector(term, Ints);
    }
  }
}

// The sums of a block whose exponents are known. Those of hard ones come out as anything.
INLINE void sum_block(const Factors& f, SumRule rule, int row, int column, Block& block) {
  Ints exponent[kBlock];
  Floats scale[kBlock];
  // Two parts: the sum of 17 terms of 16-bit operands may need 33 bits.
  Words low[kBlock];
  Words high[kBlock];
#pragma GCC unroll 4
  for (int r = 0; r < kBlock; ++r) {
    Shorts e = block.largest[r];
    e = e > kLeastEasy ? e : Shorts{} + kLeastEasy;
    e = e < kLargestEasy ? e : Shorts{} + kLargestEasy;
    exponent[r] = __builtin_convertvector(e, Ints);
    scale[r] = (Floats)((127 + rule.term_bits - exponent[r]) << 23);
    low[r] = (Words) __builtin_convertvector(block.sums[r] * scale[r], Ints);
    high[r] = Words{};
  }
  add_terms(f, row, column, {0, f.depth() / 2}, scale, low);
  add_terms(f, row, column, {f.depth() / 2, f.depth()}, scale, high);
  const int64_t kept = -(int64_t{1} << (52 - rule.result_bits));  // of a double: truncates it
#pragma GCC unroll 4
  for (int r = 0; r < kBlock; ++r) {
    Doubles total = __builtin_convertvector((Ints)low[r], Doubles) +
                    __builtin_convertvector((Ints)high[r], Doubles);
    const Floats back = (Floats)((127 - rule.term_bits + exponent[r]) << 23);
    total = (Doubles)((Longs)total & kept) * __builtin_convertvector(back, Doubles);
    block.sums[r] = __builtin_convertvector(total, Floats);
  }
}

bool is_hard(int16_t largest) {
  return largest > kLargestEasy || (largest < kLeastEasy && largest > kZeroTerm);
}

INLINE bool has_hard_ones(const Block& block) {
  Shorts any = {};
#pragma GCC unroll 4
  for (int r = 0; r < kBlock; ++r) {
    const Shorts& e = block.largest[r];
    any |= (e > kLargestEasy) | ((e < kLeastEasy) & (e > kZeroTerm));
  }
  int64_t parts[2];
  std::memcpy(parts, &any, sizeof any);
  return (parts[0] | parts[1]) != 0;
}

// `sums` is still as before the product, the easy ones are done.
void sum_hard_ones(const Factors& f, int row, int column, const float* sums, Block& block) {
  for (int r = 0; r < kBlock; ++r) {
    for (int j = 0; j < kColumns; ++j) {
      if (!is_hard(block.largest[r][j])) continue;
      const float c = sums[(row + r) * f.n + column + j];
      block.sums[r][j] = fused_sum(f, row + r, column + j, c);
    }
  }
}

INLINE void add_all(const Factors& f, float* sums) {
  static thread_local Exponents exponents;
  const SumRule rule = sum_rule(f.a_operand);
  find_exponents(f, exponents);
  for (int row = 0; row < kRows; row += kBlock) {
    for (int column = 0; column < f.n; column += kColumns) {
      float* at = sums + row * f.n + column;
      Block block;
      for (int r = 0; r < kBlock; ++r) load(at + r * f.n, block.sums[r]);
      find_largest(f, exponents, row, column, block);
      sum_block(f, rule, row, column, block);
      if (has_hard_ones(block)) sum_hard_ones(f, row, column, sums, block);
      for (int r = 0; r < kBlock; ++r) store(block.sums[r], at + r * f.n);
    }
  }
}

#undef INLINE

void add_narrow(const Factors& f, float* sums) { add_all(f, sums); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void add_wide(const Factors& f, float* sums) { add_all(f, sums); }
#endif

int exponent_of(float x, int least) {
  return std::max(static_cast<int>(bits_of_float(x) >> 23 & 0xffu) - 127, least);
}

}  // namespace

void add_products(const Factors& factors, float* sums) {
#if defined(__x86_64__)
  static const bool is_wide = __builtin_cpu_supports("avx2");
  if (is_wide) return add_wide(factors, sums);
#endif
  add_narrow(factors, sums);
}

// A step of 32 products is below 2^24, so floats hold it.
void add_products(const Factors& factors, int32_t* sums) {
  for (int row = 0; row < kRows; ++row) {
    float step[kMaxN] = {};
    for (int k = 0; k < factors.depth(); ++k) {
      const float x = factors.a[row * factors.depth() + k];
      const float* b = factors.b + k * factors.n;
      for (int column = 0; column < factors.n; ++column) step[column] += x * b[column];
    }
    for (int column = 0; column < factors.n; ++column) {
      int32_t& sum = sums[row * factors.n + column];
      const auto more = static_cast<int32_t>(step[column]);
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(more));
    }
  }
}

float fused_sum(const Factors& factors, int row, int column, float c) {
  const SumRule rule = sum_rule(factors.a_operand);
  const float* a = factors.a + row * factors.depth();
  const float* b = factors.b + column;
  double plain = c;  // what is not finite in it is so in the result
  int largest = exponent_of(c, kLeastFloatExponent);
  for (int k = 0; k < factors.depth(); ++k) {
    const float x = a[k];
    const float y = b[k * factors.n];
    plain += double{x} * double{y};
    if (x == 0 || y == 0) continue;
    largest = std::max(largest, exponent_of(x, least_exponent(factors.a_operand)) +
                                    exponent_of(y, least_exponent(factors.b_operand)));
  }
  if (std::isnan(plain)) return float_of_bits(0x7fffffff);
  if (std::isinf(plain)) return static_cast<float>(plain);
  const auto term = [&](double x) { return std::trunc(std::ldexp(x, rule.term_bits - largest)); };
  double sum = term(c);
  for (int k = 0; k < factors.depth(); ++k) {
    sum += term(double{a[k]} * double{b[k * factors.n]});
  }
  if (sum == 0) return 0;
  sum = std::ldexp(sum, largest - rule.term_bits);
  const int grain = std::max(std::ilogb(sum), kLeastFloatExponent) - rule.result_bits;
  const double result = std::ldexp(std::trunc(std::ldexp(sum, -grain)), grain);
  if (result == 0) return 0;             // too small for f32: no sign is left
  constexpr double kTooLarge = 0x1p128;  // a conversion of more than f32 holds is not defined
  if (std::abs(result) >= kTooLarge)
    return std::copysign(HUGE_VALF, static_cast<float>(sum > 0 ? 1 : -1));
  return static_cast<float>(result);
}

}  // namespace nautilus::emulator

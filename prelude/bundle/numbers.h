/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher of a bundle is made of, the same text in every bundle. All functions are static:
 * several bundles can be linked into one program. The file that includes this one says by BUNDLE
 * what the bundle's struct is called, and has the types Tensor, Call and Error of its header. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Operators of expressions: the compiler's own rules for all inputs. Integers have 64 bits and
 * wrap, division rounds down, division by zero gives 0; floats are doubles. */
static inline int64_t i_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t i_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t i_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int64_t i_neg(int64_t a) { return i_sub(0, a); }
static inline int64_t i_abs(int64_t a) { return a < 0 ? i_neg(a) : a; }
static inline int64_t i_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t i_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t i_and(int64_t a, int64_t b) { return a & b; }
static inline int64_t i_or(int64_t a, int64_t b) { return a | b; }
static inline int64_t i_bit_and(int64_t a, int64_t b) { return a & b; }
static inline int64_t i_bit_or(int64_t a, int64_t b) { return a | b; }
static inline int64_t i_bit_xor(int64_t a, int64_t b) { return a ^ b; }
static inline int64_t i_shift_left(int64_t a, int64_t n) {
  return n > 63 ? 0 : (int64_t)((uint64_t)a << (n < 0 ? 0 : n));
}
static inline int64_t i_shift_right(int64_t a, int64_t n) {
  return a >> (n < 0 ? 0 : n > 63 ? 63 : n);
}
static inline int64_t i_not(int64_t a) { return a == 0; }
static inline int64_t i_eq(int64_t a, int64_t b) { return a == b; }
static inline int64_t i_ne(int64_t a, int64_t b) { return a != b; }
static inline int64_t i_lt(int64_t a, int64_t b) { return a < b; }
static inline int64_t i_le(int64_t a, int64_t b) { return a <= b; }
static inline int64_t i_gt(int64_t a, int64_t b) { return a > b; }
static inline int64_t i_ge(int64_t a, int64_t b) { return a >= b; }
static inline int64_t i_select(int64_t c, int64_t a, int64_t b) { return c ? a : b; }
static inline int64_t i_floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return i_neg(a);
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
static inline int64_t i_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static inline double f_add(double x, double y) { return x + y; }
static inline double f_sub(double x, double y) { return x - y; }
static inline double f_mul(double x, double y) { return x * y; }
static inline double f_div(double x, double y) { return x / y; }
static inline double f_pow(double x, double y) { return pow(x, y); }
static inline double f_neg(double x) { return -x; }
static inline double f_abs(double x) { return fabs(x); }
static inline double f_exp(double x) { return exp(x); }
static inline double f_exp2(double x) { return exp2(x); }
static inline double f_log(double x) { return log(x); }
static inline double f_log2(double x) { return log2(x); }
static inline double f_log1p(double x) { return log1p(x); }
static inline double f_expm1(double x) { return expm1(x); }
static inline double f_sqrt(double x) { return sqrt(x); }
static inline double f_rsqrt(double x) { return 1 / sqrt(x); }
static inline double f_tanh(double x) { return tanh(x); }
static inline double f_erf(double x) { return erf(x); }
static inline double f_sin(double x) { return sin(x); }
static inline double f_cos(double x) { return cos(x); }
static inline double f_floor(double x) { return floor(x); }
static inline double f_round(double x) { return nearbyint(x); }
static inline double f_sigmoid(double x) {
  return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}
/* NaN is ignored, -0 is less than +0. */
static inline double f_max(double x, double y) {
  if (isnan(x)) return y;
  if (x == y) return signbit(x) ? y : x;
  return y > x ? y : x;
}
static inline double f_min(double x, double y) {
  if (isnan(x)) return y;
  if (x == y) return signbit(x) ? x : y;
  return y < x ? y : x;
}
static inline int64_t f_eq(double x, double y) { return x == y; }
static inline int64_t f_ne(double x, double y) { return x != y; }
static inline int64_t f_lt(double x, double y) { return x < y; }
static inline int64_t f_le(double x, double y) { return x <= y; }
static inline int64_t f_gt(double x, double y) { return x > y; }
static inline int64_t f_ge(double x, double y) { return x >= y; }
static inline double f_select(int64_t c, double a, double b) { return c ? a : b; }

/* Conversions: integers wrap, floats become the nearest value of their type, what is out of an
 * integer's range its nearest end. */
static inline int64_t to_bool(int64_t a) { return a != 0; }
static inline int64_t to_i8(int64_t a) { return (int8_t)a; }
static inline int64_t to_u8(int64_t a) { return (uint8_t)a; }
static inline int64_t to_i32(int64_t a) { return (int32_t)a; }
static inline double i_to_f(int64_t a) { return (double)a; }
static inline int64_t f_to_i(double x, int bits, int64_t least, int64_t most) {
  if (isnan(x)) return 0;
  const double whole = trunc(x);
  if (whole >= ldexp(1, bits)) return most;
  if (whole <= (double)least) return least;
  return (int64_t)whole;
}
static inline double to_f32(double x) { return (double)(float)x; }
/* A float of so many significant bits: adding and subtracting a number whose last place is the
 * result's rounds once, to the nearest, ties to even. */
static inline double f_narrow(double x, int precision, int min_exponent, double most,
                              int saturates) {
  if (isnan(x)) return x;
  const double magnitude = fabs(x);
  double rounded = HUGE_VAL;
  if (magnitude < 2 * most) {
    int exponent = min_exponent;
    if (magnitude > 0) frexp(magnitude, &exponent);
    exponent = magnitude > 0 && exponent - 1 > min_exponent ? exponent - 1 : min_exponent;
    const volatile double shift = ldexp(1, exponent - (precision - 1) + 52);
    const volatile double sum = magnitude + shift;
    rounded = sum - shift;
    if (rounded > most) rounded = HUGE_VAL;
  }
  if (saturates && rounded > most) rounded = most;
  return copysign(rounded, x);
}
static inline double to_f16(double x) { return f_narrow(x, 11, -14, 65504.0, 0); }
static inline double to_bf16(double x) { return f_narrow(x, 8, -126, ldexp(255, 120), 0); }
static inline double to_f8e4m3(double x) { return f_narrow(x, 4, -6, 448.0, 1); }
static inline double to_f8e5m2(double x) { return f_narrow(x, 3, -14, 57344.0, 1); }

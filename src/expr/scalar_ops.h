// SPDX-License-Identifier: Apache-2.0
// The meaning of every operator on numbers, written once.
//
// Floats are evaluated in fp64, integers in 64 bits and wrapped to their dtype by the caller. Every
// evaluator dispatches through these functions, with a scalar or with a loop around the given
// lambda, so they cannot disagree about an operator.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "expr/expr.h"

namespace nautilus::expr {

// Floor division and its remainder; division by zero gives 0, and so does the remainder by zero.
// Defined for all inputs.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// x * 2^n, wrapped, and the floor of x / 2^n, for every n: bits that leave the word are lost, and a
// negative n counts as 0.
inline int64_t shift_left(int64_t x, int64_t n) {
  if (n >= 64) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(x) << (n < 0 ? 0 : n));
}
inline int64_t shift_right(int64_t x, int64_t n) { return x >> (n < 0 ? 0 : n > 63 ? 63 : n); }

// A NaN operand is ignored, signalling or not, and -0 is less than +0: the order of operands makes
// no difference, and neither does the C library.
inline double float_max(double x, double y) {
  if (std::isnan(x)) return y;
  if (x == y) return std::signbit(x) ? y : x;
  return y > x ? y : x;
}
inline double float_min(double x, double y) {
  if (std::isnan(x)) return y;
  if (x == y) return std::signbit(x) ? x : y;
  return y < x ? y : x;
}

// Calls use(f) with f: double -> double.
template <class Use>
void with_float_unary(Op op, Use&& use) {
  switch (op) {
    case Op::Neg:
      return use([](double x) { return -x; });
    case Op::Exp:
      return use([](double x) { return std::exp(x); });
    case Op::Exp2:
      return use([](double x) { return std::exp2(x); });
    case Op::Log:
      return use([](double x) { return std::log(x); });
    case Op::Log2:
      return use([](double x) { return std::log2(x); });
    case Op::Log1p:
      return use([](double x) { return std::log1p(x); });
    case Op::Expm1:
      return use([](double x) { return std::expm1(x); });
    case Op::Sqrt:
      return use([](double x) { return std::sqrt(x); });
    case Op::Rsqrt:
      return use([](double x) { return 1 / std::sqrt(x); });
    case Op::Tanh:
      return use([](double x) { return std::tanh(x); });
    case Op::Erf:
      return use([](double x) { return std::erf(x); });
    case Op::Sigmoid:  // both forms avoid an overflowing exponential
      return use([](double x) {
        return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
      });
    case Op::Sin:
      return use([](double x) { return std::sin(x); });
    case Op::Cos:
      return use([](double x) { return std::cos(x); });
    case Op::Abs:
      return use([](double x) { return std::fabs(x); });
    case Op::Floor:
      return use([](double x) { return std::floor(x); });
    case Op::Round:
      return use([](double x) { return std::nearbyint(x); });
    default:
      NAUT_CHECK(false, "{} on floats", info(op).name);
  }
}

// Calls use(f) with f: double x double -> double.
template <class Use>
void with_float_binary(Op op, Use&& use) {
  switch (op) {
    case Op::Add:
      return use([](double x, double y) { return x + y; });
    case Op::Sub:
      return use([](double x, double y) { return x - y; });
    case Op::Mul:
      return use([](double x, double y) { return x * y; });
    case Op::Div:
      return use([](double x, double y) { return x / y; });
    case Op::Min:
      return use([](double x, double y) { return float_min(x, y); });
    case Op::Max:
      return use([](double x, double y) { return float_max(x, y); });
    case Op::Pow:
      return use([](double x, double y) { return std::pow(x, y); });
    default:
      NAUT_CHECK(false, "{} on floats", info(op).name);
  }
}

// Calls use(f) with f: int64 x int64 -> int64; also the logic operators on 0 and 1.
template <class Use>
void with_int_binary(Op op, Use&& use) {
  switch (op) {
    case Op::Add:
      return use(wrapping_add);
    case Op::Sub:
      return use(wrapping_sub);
    case Op::Mul:
      return use(wrapping_mul);
    case Op::FloorDiv:
      return use(floor_div);
    case Op::Mod:
      return use(floor_mod);
    case Op::Min:
      return use([](int64_t x, int64_t y) { return x < y ? x : y; });
    case Op::Max:
      return use([](int64_t x, int64_t y) { return x > y ? x : y; });
    case Op::And:
    case Op::BitAnd:
      return use([](int64_t x, int64_t y) { return x & y; });
    case Op::Or:
    case Op::BitOr:
      return use([](int64_t x, int64_t y) { return x | y; });
    case Op::BitXor:
      return use([](int64_t x, int64_t y) { return x ^ y; });
    case Op::ShiftLeft:
      return use(shift_left);
    case Op::ShiftRight:
      return use(shift_right);
    default:
      NAUT_CHECK(false, "{} on integers", info(op).name);
  }
}

// Calls use(f) with a generic f: T x T -> bool.
template <class Use>
void with_comparison(Op op, Use&& use) {
  switch (op) {
    case Op::Eq:
      return use([](auto x, auto y) { return x == y; });
    case Op::Ne:
      return use([](auto x, auto y) { return x != y; });
    case Op::Lt:
      return use([](auto x, auto y) { return x < y; });
    case Op::Le:
      return use([](auto x, auto y) { return x <= y; });
    case Op::Gt:
      return use([](auto x, auto y) { return x > y; });
    case Op::Ge:
      return use([](auto x, auto y) { return x >= y; });
    default:
      NAUT_CHECK(false, "{} is no comparison", info(op).name);
  }
}

// A number of some dtype: `f` for float dtypes, `i` for integers and bool.
union Value {
  double f;
  int64_t i;
};
inline Value float_value(double f) { return {.f = f}; }
inline Value int_value(int64_t i) { return {.i = i}; }

// One operator on numbers. `operand` is the dtype of the operands (of the branches for Select),
// `result` that of the result.
Value apply(Op op, DType result, DType operand, const Value* args);
Value cast_value(DType to, DType from, Value x);
// What a reduction starts from when it has no initial element (argmax, argmin: the value part).
Value identity(Reducer reducer, DType dtype);
// Whether a reduction that has so far combined to `so_far` stays what it is by another such term.
bool changes_nothing(Expr term, Reducer reducer, Expr so_far);
// Whether argmax or argmin changes to `x`: NaN is never chosen, the first of equal values stays.
bool is_better(Reducer reducer, DType dtype, Value x, Value best, bool is_first);
// The operator that combines two partial results (sum: Add, any: Or; argmax, argmin have none).
Op combiner(Reducer reducer);

}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
// How far a legal kernel may be from the fp64 value: bounds carried through every operator.
//
// A kernel may compute in the compute dtype, with fused multiply-adds, another order of summation
// and elementary functions of a few ulp or coarser ones (docs/semantics.md). Each value carries a
// bound e for that difference: the bounds of its operands times the operator's slope, plus one
// rounding of its own. Where a discontinuity is within the bound (a comparison that could go either
// way), the bound is the height of the step, or infinite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "expr/scalar_ops.h"

namespace nautilus::expr {

struct Bounded {
  Value v;
  double e = 0;
};

inline constexpr double kInf = std::numeric_limits<double>::infinity();

// The roundings of a float dtype; loops over many results look it up once.
struct Rounding {
  explicit Rounding(DType dtype)
      : unit(unit_roundoff(dtype)),
        largest(max_finite(dtype)),
        tiny(dtype == DType::F64 ? 2.3e-308 : 1.2e-38) {}

  // One rounding of a result that is at most `magnitude` in a kernel, bounds of the operands
  // included: 0 for zeros and infinities, unlimited beyond the range.
  double of(double value, double magnitude) const {
    if (value == 0 && magnitude == 0) return 0;
    if (!std::isfinite(value)) return 0;
    if (std::max(std::fabs(value), magnitude) > largest) return kInf;
    return unit * magnitude + tiny;
  }

  double unit;
  double largest;
  double tiny;  // subnormal results may be flushed to zero
};
inline double rounding(DType dtype, double value, double magnitude) {
  return Rounding(dtype).of(value, magnitude);
}

// Infinite and NaN results: exact if they come from exact infinite operands (masks) or from exact
// finite ones. From uncertain operands they come from a pole, and a kernel's result is unbounded.
inline double non_finite_bound(Bounded x, Bounded y) {
  const bool is_finite_x = std::isfinite(x.v.f);
  const bool is_finite_y = std::isfinite(y.v.f);
  const bool comes_from_finite = is_finite_x && is_finite_y;
  // A value without a bound may be infinite as well, and two such values may cancel.
  if (x.e == kInf || y.e == kInf) return kInf;
  const double e =
      (comes_from_finite || !is_finite_x ? x.e : 0) + (comes_from_finite || !is_finite_y ? y.e : 0);
  return e == 0 ? 0 : kInf;
}
inline double finite_bound(double value, double e, Bounded x, Bounded y) {
  if (std::isfinite(value)) return std::isnan(e) ? kInf : e;
  return non_finite_bound(x, y);
}

// 0 is within the bound, and the value is not certain.
inline bool may_be_zero(Bounded x) { return x.e > 0 && std::fabs(x.v.f) <= x.e; }

// f is monotone on the interval x +- e (or close enough to it): the ends tell.
template <class F>
double ends(F f, double x, double e, double value) {
  if (e == 0) return 0;
  if (e == kInf) return kInf;
  const double a = std::fabs(f(x + e) - value);
  const double b = std::fabs(f(x - e) - value);
  return std::isnan(a) || std::isnan(b) ? kInf : std::max(a, b);
}

// Multiplication, inline because contractions spend their time here.
inline double product_bound(const Rounding& rounding, Bounded x, Bounded y, double value) {
  double e =
      (x.e != 0 ? x.e * (std::fabs(y.v.f) + y.e) : 0) + (y.e != 0 ? std::fabs(x.v.f) * y.e : 0);
  e += rounding.of(value, std::fabs(value) + e);
  if (std::isfinite(value)) return std::isnan(e) ? kInf : e;
  // An infinity times a value that may be 0 may be NaN, or the other infinity.
  if ((std::isinf(x.v.f) && may_be_zero(y)) || (std::isinf(y.v.f) && may_be_zero(x))) return kInf;
  return non_finite_bound(x, y);
}

// How far elementary functions of f32 may be from their values: a few ulp, or the errors below for
// programs with outputs too narrow to show them (docs/language.md, section 8).
enum class Functions : uint8_t { FewUlp, Coarse };
inline constexpr double kCoarseTanh = 5.3e-4;   // relative; just above 2^-11
inline constexpr double kCoarseLog2 = 0x1p-22;  // of the larger of 1 and the base 2 logarithm
inline constexpr double kCoarseErf = 5e-7;      // absolute
// An index as f32 may be rounded like an index that is this much larger.
inline constexpr int64_t kCoarsePosition = 512;
// What that adds to the index itself.
double coarse_position_error(double index);

// Bound of an operator with float result: the bounds of the operands, and the rounding of the
// result (several ulp for elementary functions).
double unary_bound(Op op, DType dtype, double x, double e, double value,
                   Functions functions = Functions::FewUlp);
double binary_bound(Op op, DType dtype, Bounded x, Bounded y, double value);
double int_binary_bound(Op op, Bounded x, Bounded y);
// 0 or 1: whether a comparison could have the other result.
double comparison_bound(bool is_float_operand, Bounded x, Bounded y);
double cast_bound(DType to, DType from, Bounded x, Value result);
double select_bound(DType dtype, Bounded condition, Bounded x, Bounded y);

}  // namespace nautilus::expr

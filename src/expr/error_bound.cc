// SPDX-License-Identifier: Apache-2.0
#include "expr/error_bound.h"

#include <limits>

namespace nautilus::expr {

namespace {

// The error of a coarse function of x +- e in addition to a few ulp; its value in a kernel is at
// most `magnitude`.
double coarse_error(Op op, double x, double e, double magnitude) {
  constexpr double kSmallestNormal = 0x1p-126;
  constexpr double kLog2 = 0.693147180559945309;
  const bool is_flushed = (x != 0 || e != 0) && std::fabs(x) - e < kSmallestNormal;
  switch (op) {
    case Op::Tanh:
      return kCoarseTanh * magnitude;
    case Op::Erf:
      return kCoarseErf;
    case Op::Log2:
      return is_flushed ? kInf : kCoarseLog2 * std::max(1.0, magnitude);
    case Op::Log:
      return is_flushed ? kInf : kCoarseLog2 * std::max(kLog2, magnitude);
    default:
      return 0;
  }
}

}  // namespace

double unary_bound(Op op, DType dtype, double x, double e, double value, Functions functions) {
  const Bounded operand{float_value(x), e};
  double slope = 0;
  switch (op) {
    case Op::Neg:
    case Op::Abs:
      return finite_bound(value, e, operand, operand);
    case Op::Sin:
    case Op::Cos: {
      // An angle that overflows where the kernel computes it has no sine.
      const double largest = dtype == DType::F64 ? std::numeric_limits<double>::max()
                                                 : std::numeric_limits<float>::max();
      slope = std::fabs(x) + e > largest ? kInf : std::min(e, 2.0);
      break;
    }
    case Op::Floor:
    case Op::Round:
      with_float_unary(op, [&](auto f) { slope = ends(f, x, e, value); });
      return finite_bound(value, slope, operand, operand);
    case Op::Exp:
    case Op::Sigmoid: {
      // exp2(x * log2(e)): the exponent is rounded, and so is its factor.
      const double exponent = std::isfinite(x) ? 2 * unit_roundoff(dtype) * std::fabs(x) : 0;
      with_float_unary(op, [&](auto f) { slope = ends(f, x, e + exponent, value); });
      break;
    }
    default:
      with_float_unary(op, [&](auto f) { slope = ends(f, x, e, value); });
      break;
  }
  if (functions == Functions::Coarse && dtype != DType::F64)
    slope += coarse_error(op, x, e, std::fabs(value) + slope);
  const double magnitude = (std::fabs(value) + slope) * (1 + 4 * unit_roundoff(dtype));
  return finite_bound(value, slope + 4 * rounding(dtype, value, magnitude), operand, operand);
}

double coarse_position_error(double index) {
  constexpr double kExact = 0x1p23;  // a sum of two parts is exact below
  const double u = unit_roundoff(DType::F32);
  const double own = u * static_cast<double>(kCoarsePosition);
  return std::fabs(index) < kExact ? own : own + 2 * u * std::fabs(index);
}

double binary_bound(Op op, DType dtype, Bounded x, Bounded y, double value) {
  const double a = std::fabs(x.v.f);
  const double b = std::fabs(y.v.f);
  double e = 0;
  switch (op) {
    case Op::Add:
    case Op::Sub:  // the operands' size counts: a kernel may scale or fuse before it subtracts
      e = x.e + y.e;
      e += rounding(dtype, value, std::max({a + x.e, b + y.e, std::fabs(value) + e}));
      break;
    case Op::Mul:
      return product_bound(Rounding(dtype), x, y, value);
    case Op::Div: {
      if (may_be_zero(y)) return std::isnan(x.v.f) ? x.e : kInf;
      const double quotient = std::fabs(value);
      e = (x.e + quotient * y.e) / (b - y.e);
      e += 4 * rounding(dtype, value, (quotient + e) * (1 + 4 * unit_roundoff(dtype)));
      break;
    }
    case Op::Min:
    case Op::Max:
      return finite_bound(value, std::max(x.e, y.e), x, y);
    case Op::Pow: {
      // Between the corners there is a pole, or there are points without a value.
      if (x.e >= a && x.e > 0 && y.v.f - y.e < 0) return finite_bound(value, kInf, x, y);
      if (x.v.f - x.e < 0 && y.e > 0) return finite_bound(value, kInf, x, y);
      // pow(x, y) = exp2(y * log2(x)): the exponent's rounding is multiplied by its size.
      double exponent = 0;
      for (const double dx : {-x.e, x.e}) {
        const double base = std::fabs(x.v.f + dx);
        if (base > 0) exponent = std::max(exponent, (b + y.e) * std::fabs(std::log2(base)));
        if (x.e == 0 && y.e == 0) break;
        for (const double dy : {-y.e, y.e}) {
          const double corner = std::pow(x.v.f + dx, y.v.f + dy);
          const double d = corner == value ? 0 : std::fabs(corner - value);
          e = std::isnan(d) ? kInf : std::max(e, d);
        }
      }
      if (std::isinf(value) && e > 0) return kInf;  // as inf ^ 0 and what is near it
      const double ulps = 8 + 2 * exponent;
      e +=
          ulps * rounding(dtype, value, (std::fabs(value) + e) * (1 + ulps * unit_roundoff(dtype)));
      break;
    }
    default:
      NAUT_CHECK(false, "no bound for {}", info(op).name);
  }
  return finite_bound(value, e, x, y);
}

double int_binary_bound(Op op, Bounded x, Bounded y) {
  if (x.e == 0 && y.e == 0) return 0;
  const double a = std::fabs(static_cast<double>(x.v.i));
  const double b = std::fabs(static_cast<double>(y.v.i));
  switch (op) {
    case Op::Add:
    case Op::Sub:
      return x.e + y.e;
    case Op::Mul:
      return (x.e != 0 ? x.e * (b + y.e) : 0) + (y.e != 0 ? a * y.e : 0);
    case Op::Min:
    case Op::Max:
      return std::max(x.e, y.e);
    case Op::And:  // false and anything is false
      return (!x.v.i && x.e == 0) || (!y.v.i && y.e == 0) ? 0 : 1;
    case Op::Or:
      return (x.v.i && x.e == 0) || (y.v.i && y.e == 0) ? 0 : 1;
    default:
      return kInf;
  }
}

double comparison_bound(bool is_float_operand, Bounded x, Bounded y) {
  const double e = x.e + y.e;
  if (e == 0) return 0;
  // A number without a bound may be any, not a number among them: infinities that both overflowed
  // to are not equal for sure.
  if (e == kInf) return 1;
  const double a = is_float_operand ? x.v.f : static_cast<double>(x.v.i);
  const double b = is_float_operand ? y.v.f : static_cast<double>(y.v.i);
  if (std::isnan(a) || std::isnan(b)) return 0;
  if (a == b && std::isinf(a)) return 0;
  return std::fabs(a - b) <= e ? 1 : 0;
}

double cast_bound(DType to, DType from, Bounded x, Value result) {
  // An exact operand is rounded by the oracle and by every kernel alike.
  if (x.e == 0) return 0;
  const double at = is_float(from) ? x.v.f : static_cast<double>(x.v.i);
  if (!std::isfinite(at)) return kInf;
  if (to == DType::Bool) return std::fabs(at) <= x.e ? 1 : 0;
  if (x.e == kInf) return kInf;
  if (is_float(to) && holds_every_value(to, from)) return x.e;
  const double low = at - x.e;
  const double high = at + x.e;
  if (!is_float(to) && !is_float(from)) {
    const auto least = static_cast<double>(int_min(to));
    const auto greatest = static_cast<double>(int_max(to));
    return low >= least && high <= greatest ? x.e : greatest - least;  // it may wrap
  }
  // Rounding, truncation and saturation are monotone: the ends tell.
  const double value = is_float(to) ? result.f : static_cast<double>(result.i);
  auto distance = [&](double end) {
    const double other =
        is_float(to) ? round_to(to, end) : static_cast<double>(float_to_int(to, end));
    return other == value ? 0 : std::fabs(other - value);
  };
  return std::max(distance(low), distance(high));
}

double select_bound(DType dtype, Bounded c, Bounded x, Bounded y) {
  if (c.e == 0) return c.v.i ? x.e : y.e;
  const double a = is_float(dtype) ? x.v.f : static_cast<double>(x.v.i);
  const double b = is_float(dtype) ? y.v.f : static_cast<double>(y.v.i);
  const double step = a == b ? 0 : std::fabs(a - b);
  return std::isnan(step) ? kInf : step + std::max(x.e, y.e);
}

}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/magnitude.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spec/equations.h"

namespace nautilus::spec {

using expr::DType;
using expr::Expr;
using expr::Op;
using expr::Reducer;

namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr int kMaxMagnitudeSteps = 500;
// No axis is longer than this power of two.
constexpr double kLongestAxis = 40;
// Subnormal numbers of f32, and the least that no kernel flushes to 0.
constexpr double kTiniest = -149;
constexpr double kLeastNormal = -126;

// The power of two that no finite number of the dtype reaches.
double range_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1024;
    case DType::F16:
    case DType::F8E5M2:
      return 16;
    case DType::F8E4M3:
      return 9;
    case DType::F32:
    case DType::BF16:
    case DType::TF32:
      return 128;
    default:
      return 64;
  }
}

double within(DType dtype, double exponent) {
  return exponent <= range_of(dtype) ? exponent : kUnbounded;
}

double exponent_of(Expr number) {
  const double x = std::fabs(number.number());
  return std::isnan(x) ? kUnbounded : std::log2(x);
}

bool guards_zero(Expr select) {
  const Expr c = select[0];
  return c.op() == Op::Eq && c[0] == select[2] && c[1].op() == Op::FloatConst && c[1].number() == 0;
}

}  // namespace

bool Magnitudes::is_in_range(Expr e) {
  steps_ = 0;
  return largest(e) < kUnbounded;
}

bool Magnitudes::is_away_from_zero(Expr e) {
  steps_ = 0;
  return smallest(e) >= kTiniest;
}

Expr Magnitudes::written_out(Expr read) {
  const auto it = equations_.find(read.name());
  if (it == equations_.end() || expr::has_reduce(it->second.body)) return {};
  return body_at(it->second, read, pool_);
}

double Magnitudes::largest(Expr e) {
  if (++steps_ > kMaxMagnitudeSteps) return kUnbounded;
  if (!is_float(e.dtype())) return range_of(e.dtype());
  switch (e.op()) {
    case Op::FloatConst:
      return within(e.dtype(), exponent_of(e));
    case Op::Var:
      return range_of(e.dtype());
    case Op::Read:
      return largest_element(e);
    case Op::Cast:
      return within(e.dtype(), largest(e[0]));
    case Op::Neg:
    case Op::Abs:
    case Op::Floor:
    case Op::Round:
      return largest(e[0]);
    case Op::Sigmoid:
    case Op::Tanh:
    case Op::Erf:
    case Op::Sin:
    case Op::Cos:
      return largest(e[0]) < kUnbounded ? 0 : kUnbounded;
    case Op::Exp:
    case Op::Exp2:
    case Op::Expm1:
      return within(e.dtype(), largest_exponential(e));
    // At most its argument, where that is not negative.
    case Op::Log1p:
      return values_.is_nonnegative(e[0]) ? largest(e[0]) : kUnbounded;
    case Op::Sqrt:
      return largest(e[0]) / 2;
    case Op::Rsqrt:
      return within(e.dtype(), -smallest(e[0]) / 2);
    case Op::Add:
    case Op::Sub:
      return within(e.dtype(), std::max(largest(e[0]), largest(e[1])) + 1);
    case Op::Max:
    case Op::Min:
      return std::max(largest(e[0]), largest(e[1]));
    case Op::Select:
      return std::max(largest(e[1]), largest(e[2]));
    case Op::Mul:
      return within(e.dtype(), largest(e[0]) + largest(e[1]));
    case Op::Div:
      return within(e.dtype(), largest(e[0]) - smallest(e[1]));
    default:
      return kUnbounded;
  }
}

double Magnitudes::largest_exponential(Expr e) {
  const Expr x = e[0];
  if (x.op() == Op::Neg && values_.is_nonnegative(x[0])) return 0;
  return largest_exponent(e);
}

// The size of an exponential's exponent, of base 2.
double Magnitudes::largest_exponent(Expr e) {
  const double size = std::exp2(largest(e[0]));
  return e.op() != Op::Exp2 ? size * 1.4426950408889634 : size;
}

double Magnitudes::largest_element(Expr read) {
  const auto it = equations_.find(read.name());
  if (it == equations_.end()) return range_of(read.dtype());
  const Expr body = it->second.body;
  if (body.op() != Op::Reduce)
    return expr::has_reduce(body) ? kUnbounded
                                  : within(read.dtype(), largest(body_at(it->second, read, pool_)));
  double size = largest(body.body());
  if (body.init()) size = std::max(size, largest(body.init())) + 1;
  if (body.reducer() == Reducer::Max || body.reducer() == Reducer::Min) return size;
  if (body.reducer() != Reducer::Sum) return kUnbounded;
  for (size_t k = 0; k < body.axis_count(); ++k) {
    const Expr n = body.extent(k);
    size += n.op() == Op::IntConst
                ? std::log2(std::max<double>(1, static_cast<double>(n.integer())))
                : kLongestAxis;
  }
  return within(read.dtype(), size);
}

double Magnitudes::smallest(Expr e) {
  if (++steps_ > kMaxMagnitudeSteps) return -kUnbounded;
  if (!is_float(e.dtype())) {
    return e.op() == Op::IntConst && e.integer() != 0 ? 0 : -kUnbounded;
  }
  const auto normal = [](double exponent) {
    return exponent >= kLeastNormal ? exponent : -kUnbounded;
  };
  switch (e.op()) {
    case Op::FloatConst:
      return normal(exponent_of(e));
    case Op::Var:
      return values_.is_positive(e) ? kTiniest : -kUnbounded;
    case Op::Read: {
      const Expr body = written_out(e);
      return body ? smallest(body) : -kUnbounded;
    }
    case Op::Cast:
      return e.dtype() == DType::F32 || e.dtype() == DType::F64 || e.dtype() == DType::BF16 ||
                     e.dtype() == DType::TF32
                 ? normal(smallest(e[0]))
                 : -kUnbounded;
    case Op::Neg:
    case Op::Abs:
      return smallest(e[0]);
    case Op::Exp:
    case Op::Exp2:
      if (values_.is_nonnegative(e[0])) return 0;
      return normal(-largest_exponent(e));
    case Op::Sqrt:
      return smallest(e[0]) / 2;
    case Op::Rsqrt:
      return -largest(e[0]) / 2;
    case Op::Add:
      return smallest_sum(e);
    case Op::Max: {
      double size = std::min(smallest(e[0]), smallest(e[1]));
      for (const size_t k : {size_t{0}, size_t{1}}) {
        if (values_.is_positive(e[k])) size = std::max(size, smallest(e[k]));
      }
      return size;
    }
    case Op::Min:
      return std::min(smallest(e[0]), smallest(e[1]));
    case Op::Select:
      // The guard of the program itself: what it lets through is not 0.
      if (guards_zero(e)) return std::min(smallest(e[1]), kTiniest);
      return std::min(smallest(e[1]), smallest(e[2]));
    case Op::Mul:
      return normal(smallest(e[0]) + smallest(e[1]));
    case Op::Div:
      return normal(smallest(e[0]) - largest(e[1]));
    default:
      return -kUnbounded;
  }
}

// Numbers of one sign do not cancel.
double Magnitudes::smallest_sum(Expr e) {
  if (!values_.is_nonnegative(e[0]) || !values_.is_nonnegative(e[1])) return -kUnbounded;
  return std::max(smallest(e[0]), smallest(e[1]));
}

}  // namespace nautilus::spec

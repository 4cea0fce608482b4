// SPDX-License-Identifier: Apache-2.0
#include "algebra/exact_halves.h"

#include "expr/scalar_ops.h"

namespace nautilus::algebra {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

constexpr int64_t kLargestLook = 256;  // of the expression as a tree: operands are small

bool holds(DType dtype, double x) {
  const expr::Value rounded = expr::cast_value(dtype, DType::F64, expr::float_value(x));
  return rounded.f == x;
}

ExactHalves both(const ExactHalves& a, const ExactHalves& b) {
  return {a.in_bf16 && b.in_bf16, a.in_f16 && b.in_f16, a.is_stored_float || b.is_stored_float,
          a.has_element || b.has_element};
}

// Of an element, or of what was rounded to the dtype.
ExactHalves of_dtype(DType dtype) {
  switch (dtype) {
    case DType::BF16:
      return {true, false, true, true};
    case DType::F16:
      return {false, true, true, true};
    case DType::F8E4M3:
    case DType::F8E5M2:
      return {true, true, true, true};
    case DType::I8:
    case DType::U8:
    case DType::Bool:
      return {true, true, false, true};
    default:
      return {};
  }
}

ExactHalves look(Expr e) {
  switch (e.op()) {
    case EK::FloatConst:
      return {holds(DType::BF16, e.number()), holds(DType::F16, e.number()), false, false};
    case EK::IntConst: {
      const auto x = static_cast<double>(e.integer());
      return {holds(DType::BF16, x), holds(DType::F16, x), false, false};
    }
    case EK::Read:
      return of_dtype(e.dtype());
    case EK::Cast: {
      const ExactHalves own = of_dtype(e.dtype());
      if (own.any()) return own;
      // A wider type keeps the numbers.
      const bool keeps = expr::is_float(e.dtype()) || expr::is_int(e[0].dtype());
      return keeps ? look(e[0]) : ExactHalves{};
    }
    case EK::Neg:
    case EK::Abs:
      return look(e[0]);
    case EK::Max:
    case EK::Min:
      return both(look(e[0]), look(e[1]));
    case EK::Select:
      return both(look(e[1]), look(e[2]));
    default:
      return {};
  }
}

}  // namespace

ExactHalves exact_halves(Expr e) { return e.tree_size() > kLargestLook ? ExactHalves{} : look(e); }

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
#include "expr/scalar_ops.h"

#include <limits>

namespace nautilus::expr {

Value cast_value(DType to, DType from, Value x) {
  if (is_float(from)) {
    if (is_float(to)) return float_value(holds_every_value(to, from) ? x.f : round_to(to, x.f));
    if (to == DType::Bool) return int_value(x.f != 0);
    return int_value(float_to_int(to, x.f));
  }
  // An integer reaches a float dtype with one rounding: fp64 holds what the dtype would, except for
  // huge i64.
  if (is_float(to)) return float_value(round_to(to, static_cast<double>(x.i)));
  return int_value(wrap_to(to, x.i));
}

Value apply(Op op, DType result, DType operand, const Value* args) {
  Value out{.i = 0};
  const Value x = args[0];
  if (op == Op::Select) return x.i ? args[1] : args[2];
  if (op == Op::Cast) return cast_value(result, operand, x);
  if (op == Op::Not) return int_value(x.i == 0);
  if (is_comparison(op)) {
    with_comparison(op, [&](auto f) {
      out.i = is_float(operand) ? f(args[0].f, args[1].f) : f(args[0].i, args[1].i);
    });
    return out;
  }
  const bool is_unary = info(op).arity == 1;
  if (is_float(operand)) {
    if (is_unary) {
      with_float_unary(op, [&](auto f) { out.f = f(x.f); });
    } else {
      with_float_binary(op, [&](auto f) { out.f = f(args[0].f, args[1].f); });
    }
    return out;
  }
  if (op == Op::Neg) {
    out.i = wrapping_sub(0, x.i);
  } else if (op == Op::Abs) {
    out.i = x.i < 0 ? wrapping_sub(0, x.i) : x.i;
  } else {
    with_int_binary(op, [&](auto f) { out.i = f(args[0].i, args[1].i); });
  }
  out.i = wrap_to(result, out.i);
  return out;
}

Value identity(Reducer reducer, DType dtype) {
  const bool is_f = is_float(dtype);
  const double inf = std::numeric_limits<double>::infinity();
  switch (reducer) {
    case Reducer::Sum:
      return is_f ? float_value(0) : int_value(0);
    case Reducer::Prod:
      return is_f ? float_value(1) : int_value(1);
    case Reducer::Max:
    case Reducer::ArgMax:
      return is_f ? float_value(-inf) : int_value(int_min(dtype));
    case Reducer::Min:
    case Reducer::ArgMin:
      return is_f ? float_value(inf) : int_value(int_max(dtype));
    case Reducer::Any:
      return int_value(0);
    case Reducer::All:
      return int_value(1);
  }
  NAUT_CHECK(false, "no reducer");
}

bool changes_nothing(Expr term, Reducer reducer, Expr so_far) {
  if (is_arg(reducer)) return false;
  if (so_far == term && (reducer == Reducer::Max || reducer == Reducer::Min)) return true;
  if (!term.is_const()) return false;
  const Value v = identity(reducer, term.dtype());
  return is_float(term.dtype()) ? term.number() == v.f : term.integer() == v.i;
}

bool is_better(Reducer reducer, DType dtype, Value x, Value best, bool is_first) {
  if (is_float(dtype)) {
    if (std::isnan(x.f)) return false;
    return is_first || (reducer == Reducer::ArgMax ? x.f > best.f : x.f < best.f);
  }
  return is_first || (reducer == Reducer::ArgMax ? x.i > best.i : x.i < best.i);
}

Op combiner(Reducer reducer) {
  switch (reducer) {
    case Reducer::Sum:
      return Op::Add;
    case Reducer::Prod:
      return Op::Mul;
    case Reducer::Max:
      return Op::Max;
    case Reducer::Min:
      return Op::Min;
    case Reducer::Any:
      return Op::Or;
    case Reducer::All:
      return Op::And;
    case Reducer::ArgMax:
    case Reducer::ArgMin:
      break;
  }
  NAUT_CHECK(false, "{} combines pairs, not numbers", name(reducer));
}

}  // namespace nautilus::expr

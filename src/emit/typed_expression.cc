// SPDX-License-Identifier: Apache-2.0
#include "emit/typed_expression.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "expr/bounds/affine.h"
#include "expr/dtype.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

class TypedPrinter {
 public:
  explicit TypedPrinter(const ExpressionNames& names) : names_(names) {}

  // Every operand is an atom of C++, so precedence never matters.
  std::string text(Expr e) {
    if (names_.instead) {
      if (std::string t = names_.instead(e); !t.empty()) return t;
    }
    switch (e.op()) {
      case EK::IntConst:
        return integer(e.integer(), e.dtype());
      case EK::BoolConst:
        return e.integer() ? "true" : "false";
      case EK::FloatConst:
        return floating(e.number(), e.dtype());
      case EK::Var:
        return names_.variable(e);
      case EK::Read:
        return names_.read(e);
      case EK::Select:
        return fmt::format("({} ? {} : {})", text(e[0]), text(e[1]), text(e[2]));
      case EK::Cast:
        return cast(e);
      case EK::Not:
        return "!" + text(e[0]);
      case EK::And:
        return infix(e, joins_at_once(e[1]) ? "&" : "&&");
      case EK::Or:
        return infix(e, joins_at_once(e[1]) ? "|" : "||");
      case EK::Eq:
        return infix(e, "==");
      case EK::Ne:
        return infix(e, "!=");
      case EK::Lt:
        return infix(e, "<");
      case EK::Le:
        return infix(e, "<=");
      case EK::Gt:
        return infix(e, ">");
      case EK::Ge:
        return infix(e, ">=");
      case EK::Reduce:
        break;
      default:
        return narrowed(e.dtype(), arithmetic(e));
    }
    NAUT_CHECK(false, "no device text for {}", expr::info(e.op()).name);
  }

 private:
  static std::string integer(int64_t value, DType dtype) {
    if (dtype != DType::I64)
      return value == std::numeric_limits<int32_t>::min() ? "(-2147483647 - 1)"
             : value < 0                                  ? fmt::format("({})", value)
                                                          : fmt::format("{}", value);
    if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
    return value < 0 ? fmt::format("({}ll)", value) : fmt::format("{}ll", value);
  }

  static std::string floating(double value, DType dtype) {
    const bool is_double = dtype == DType::F64;
    if (std::isnan(value))
      return is_double ? "(double)as_float(0x7fc00000u)" : "as_float(0x7fc00000u)";
    if (std::isinf(value))
      return fmt::format("({}{}infinity())", is_double ? "(double)" : "", value < 0 ? "-" : "");
    std::string out;
    if (is_double) {
      out = fmt::format("{:.17g}", value);
      if (out.find_first_of(".e") == std::string::npos) out += ".0";
    } else {
      out = float_literal(expr::round_to(dtype, value));
    }
    return std::signbit(value) ? "(" + out + ")" : out;
  }

  // Conditions on numbers in registers that cost less than a branch around them. A single
  // comparison has none anyway.
  bool joins_at_once(Expr right) const {
    return (right.op() == EK::And || right.op() == EK::Or) && is_in_registers(right);
  }
  bool is_in_registers(Expr e) const {
    if (names_.instead && !names_.instead(e).empty()) return true;
    switch (e.op()) {
      case EK::IntConst:
      case EK::BoolConst:
      case EK::FloatConst:
      case EK::Var:
        return true;
      case EK::Not:
      case EK::And:
      case EK::Or:
      case EK::Eq:
      case EK::Ne:
      case EK::Lt:
      case EK::Le:
      case EK::Gt:
      case EK::Ge:
      case EK::Add:
      case EK::Sub:
        return is_in_registers(e[0]) && (e.args().size() < 2 || is_in_registers(e[1]));
      default:
        return false;
    }
  }

  std::string infix(Expr e, std::string_view op) {
    return fmt::format("({} {} {})", text(e[0]), op, text(e[1]));
  }
  std::string call(std::string_view function, Expr e) {
    std::string out = std::string(function) + "(";
    for (size_t i = 0; i < e.args().size(); ++i) out += (i ? ", " : "") + text(e[i]);
    return out + ")";
  }

  // Coordinates and sizes only: an index, which does not leave 64 bits.
  static bool is_index(Expr e) {
    if (e.dtype() != DType::I64) return false;
    bool ok = true;
    expr::for_each(e, [&](Expr x) {
      ok &= x.op() != EK::Read && x.op() != EK::Cast && x.dtype() == DType::I64;
    });
    return ok;
  }

  // Functions of a few ulp, and coarse ones, as tiles have them; empty for others.
  std::string coarse(Expr e) {
    switch (e.op()) {
      case EK::Div:
        return call("divide", e);
      case EK::Exp:
        return fmt::format("exp2_approx({} * 1.44269504f)", text(e[0]));
      case EK::Exp2:
        return call("exp2_approx", e);
      case EK::Sqrt:
        return call("sqrt_approx", e);
      case EK::Rsqrt:
        return call("rsqrt_approx", e);
      case EK::Tanh:
        return call("tanh_approx", e);
      case EK::Erf:
        return call("erf_of", e);
      case EK::Sigmoid:
        return fmt::format("divide(1.f, 1.f + exp2_approx({} * -1.44269504f))", text(e[0]));
      default:
        return "";
    }
  }

  std::string arithmetic(Expr e) {
    if (names_.is_coarse && e.dtype() == DType::F32) {
      if (std::string out = coarse(e); !out.empty()) return out;
    }
    const bool is_float = expr::is_float(e.dtype());
    const bool is_plain = is_float || is_index(e);
    switch (e.op()) {
      case EK::Add:
        return is_plain ? infix(e, "+") : call("wrap_add", e);
      case EK::Sub:
        return is_plain ? infix(e, "-") : call("wrap_sub", e);
      case EK::Mul:
        return is_plain ? infix(e, "*") : call("wrap_mul", e);
      case EK::Neg:
        if (is_float) return "(-" + text(e[0]) + ")";
        return fmt::format("wrap_sub({}, {})", integer(0, e.dtype()), text(e[0]));
      case EK::Div:
        return infix(e, "/");
      case EK::FloorDiv:
        return is_natural(e) ? infix(e, "/") : call("safe_div", e);
      case EK::Mod:
        return is_natural(e) ? infix(e, "%") : call("safe_mod", e);
      case EK::Min:
        return call("minimum", e);
      case EK::Max:
        return call("maximum", e);
      case EK::Exp:
        return call("exp_of", e);
      case EK::Exp2:
        return call("exp2_of", e);
      case EK::Log:
        return call("log_of", e);
      case EK::Log2:
        return call("log2_of", e);
      case EK::Log1p:
        return call("log1p_of", e);
      case EK::Expm1:
        return call("expm1_of", e);
      case EK::Sqrt:
        return call("sqrt_of", e);
      case EK::Rsqrt:
        return call("rsqrt_of", e);
      case EK::Tanh:
        return call("tanh_of", e);
      case EK::Erf:
        return call("erf_exact", e);
      case EK::Sigmoid:
        return call("sigmoid_of", e);
      case EK::Sin:
        return call("sin_of", e);
      case EK::Cos:
        return call("cos_of", e);
      case EK::Pow:
        return call("pow_of", e);
      case EK::BitAnd:
        return infix(e, "&");
      case EK::BitOr:
        return infix(e, "|");
      case EK::BitXor:
        return infix(e, "^");
      case EK::ShiftLeft:
        return call("shift_left", e);
      case EK::ShiftRight:
        return call("shift_right", e);
      case EK::Abs:
        return call("absolute", e);
      case EK::Floor:
        return call("floor_of", e);
      case EK::Round:
        return call("round_of", e);
      default:
        NAUT_CHECK(false, "{} is no arithmetic", expr::info(e.op()).name);
    }
  }

  // Division of what is not negative by a positive number rounds as in C++.
  bool is_natural(Expr e) const {
    if (!names_.facts || e.dtype() != DType::I64) return false;
    const auto above = expr::Poly::of(e[0]);
    const auto below = expr::Poly::of(e[1]);
    const auto less = below ? expr::plus(*below, -1) : std::nullopt;
    return above && less && names_.facts->is_nonnegative(*above) &&
           names_.facts->is_nonnegative(*less);
  }

  // Arithmetic happens in the carrier; the result is a value of the dtype.
  static std::string narrowed(DType dtype, std::string text) {
    switch (dtype) {
      case DType::I8:
        return "(int)(signed char)" + text;
      case DType::U8:
        return "(int)(unsigned char)" + text;
      case DType::F8E4M3:
      case DType::F8E5M2:
      case DType::F16:
      case DType::BF16:
      case DType::TF32:
        return fmt::format("round_{}({})", expr::name(dtype), text);
      default:
        return text;
    }
  }

  std::string cast(Expr e) {
    const DType to = e.dtype();
    const DType from = e[0].dtype();
    const std::string x = text(e[0]);
    if (to == from) return x;
    if (to == DType::Bool) return fmt::format("({} != 0)", x);
    if (expr::is_float(from)) {
      if (expr::is_float(to)) return float_to_float(to, from, x);
      return fmt::format("to_{}({})", expr::name(to), x);
    }
    if (expr::is_float(to)) {
      if (from == DType::I64 || from == DType::I32)
        return float_to_float(to, DType::F64, "(double)" + x);
      return float_to_float(to, DType::F32, "(float)" + x);
    }
    if (to == DType::I64) return "(long long)" + x;
    if (to == DType::I32) return "(int)" + x;
    return narrowed(to, x);
  }

  static std::string float_to_float(DType to, DType from, const std::string& x) {
    if (to == DType::F64) return from == DType::F64 ? x : "(double)" + x;
    if (to == DType::F32) return from == DType::F64 ? "(float)(" + x + ")" : x;
    if (expr::holds_every_value(to, from)) return x;
    return narrowed(to, from == DType::F64 ? "to_odd(" + x + ")" : x);
  }

  const ExpressionNames& names_;
};

}  // namespace

std::string_view carrier(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return "bool";
    case DType::I8:
    case DType::U8:
    case DType::I32:
      return "int";
    case DType::I64:
      return "long long";
    case DType::F64:
      return "double";
    default:
      return "float";
  }
}

std::string typed_expression(Expr e, const ExpressionNames& names) {
  return TypedPrinter(names).text(e);
}

}  // namespace nautilus::emit

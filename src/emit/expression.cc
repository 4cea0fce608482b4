// SPDX-License-Identifier: Apache-2.0
#include "emit/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/check.h"
#include "emit/typed_expression.h"
#include "expr/bounds/affine.h"
#include "expr/walk.h"

namespace nautilus::emit {
namespace {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

// C++ precedence, larger binds tighter.
enum Strength { kTernary = 1, kOr, kAnd, kEqual, kLess, kAdd, kMul, kUnary, kAtom };

struct Text {
  std::string text;
  int strength;
};

class Printer {
 public:
  explicit Printer(const ExpressionNames& names) : names_(names) {}

  std::string at(Expr e, int needed) {
    Text t = print(e);
    return t.strength < needed ? "(" + t.text + ")" : t.text;
  }

 private:
  Text print(Expr e) {
    if (names_.instead) {
      if (std::string text = names_.instead(e); !text.empty()) return {std::move(text), kAtom};
    }
    if (names_.is_value && is_data_arithmetic(e)) return {wide_text(e), kAtom};
    switch (e.op()) {
      case EK::IntConst:
        return {fmt::format("{}", e.integer()), e.integer() < 0 ? kUnary : kAtom};
      case EK::BoolConst:
        return {e.integer() ? "true" : "false", kAtom};
      case EK::FloatConst:
        return {float_literal(e.number()), std::signbit(e.number()) ? kUnary : kAtom};
      case EK::Var:
        return {names_.variable(e), kAtom};
      case EK::Read:
        return {names_.read(e), kAtom};
      case EK::Select:
        return select(e);
      case EK::Cast:
        return cast(e);
      case EK::Neg:
        return {"-" + at(e[0], kUnary + 1), kUnary};
      case EK::Not:
        return {"!" + at(e[0], kUnary + 1), kUnary};
      case EK::Add:
        return infix(e, "+", kAdd, kAdd + 1);
      case EK::Sub:
        return infix(e, "-", kAdd, kAdd + 1);
      case EK::Mul:
        return infix(e, "*", kMul, kMul + 1);
      case EK::Eq:
        return infix(e, "==", kEqual, kEqual + 1);
      case EK::Ne:
        return infix(e, "!=", kEqual, kEqual + 1);
      case EK::Lt:
        return infix(e, "<", kLess, kLess + 1);
      case EK::Le:
        return infix(e, "<=", kLess, kLess + 1);
      case EK::Gt:
        return infix(e, ">", kLess, kLess + 1);
      case EK::Ge:
        return infix(e, ">=", kLess, kLess + 1);
      case EK::And:
        if (is_eager(e[1])) return bitwise(e, "&");
        return infix(e, "&&", kAnd, kAnd);
      case EK::Or:
        if (is_eager(e[1])) return bitwise(e, "|");
        return infix(e, "||", kOr, kOr);
      case EK::FloorDiv:
        return divide(e, "/", "floor_div");
      case EK::Mod:
        return divide(e, "%", "floor_mod");
      case EK::Div:
      case EK::Max:
      case EK::Min:
      case EK::Exp2:
      case EK::Exp:
      case EK::Log2:
      case EK::Log:
      case EK::Log1p:
      case EK::Expm1:
      case EK::Sqrt:
      case EK::Rsqrt:
      case EK::Tanh:
      case EK::Erf:
      case EK::Sigmoid:
      case EK::Abs:
      case EK::Floor:
      case EK::Round:
      case EK::Sin:
      case EK::Cos:
      case EK::Pow:
      case EK::BitAnd:
      case EK::BitOr:
      case EK::BitXor:
      case EK::ShiftLeft:
      case EK::ShiftRight:
      case EK::Reduce:
        break;
    }
    return function(e);
  }

  // Operators with a function in the prelude.
  Text function(Expr e) {
    switch (e.op()) {
      case EK::Div:
        if (names_.is_accurate) return infix(e, "/", kMul, kMul + 1);
        return call("divide", e);
      case EK::Max:
        return call("maximum", e);
      case EK::Min:
        return call("minimum", e);
      case EK::Exp2:
        return call("exp2_approx", e);
      case EK::Exp:
        return {"exp2_approx(" + at(e[0], kMul) + " * 1.44269504f)", kAtom};
      case EK::Log2:
        return call(names_.is_coarse ? "log2_approx" : "log2_of", e);
      case EK::Log:
        if (!names_.is_coarse) return call("log_of", e);
        return {"log2_approx(" + at(e[0], kTernary) + ") * 0.69314718f", kMul};
      case EK::Log1p:
        return call("log1p_of", e);
      case EK::Expm1:
        return call("expm1_of", e);
      case EK::Sqrt:
        return call(names_.is_accurate ? "sqrt_of" : "sqrt_approx", e);
      case EK::Rsqrt:
        return call("rsqrt_approx", e);
      case EK::Tanh:
        return call(names_.is_coarse ? "tanh_approx" : "tanh_of", e);
      case EK::Erf:
        return names_.is_coarse ? erf(e[0]) : call("erf_exact", e);
      case EK::Sigmoid:
        return {"divide(1.f, 1.f + exp2_approx(" + at(e[0], kMul) + " * -1.44269504f))", kAtom};
      case EK::Abs:
        return call("absolute", e);
      case EK::Floor:
        return call("floor_of", e);
      case EK::Round:
        return call("round_of", e);
      case EK::Sin:
        return call("sin_of", e);
      case EK::Cos:
        return call("cos_of", e);
      case EK::Pow:
        return call("pow_of", e);
      case EK::BitAnd:
      case EK::BitOr:
      case EK::BitXor:
      case EK::ShiftLeft:
      case EK::ShiftRight:
        return {wide_text(e), kAtom};
      default:
        break;
    }
    NAUT_CHECK(false, "no device text for {}", expr::info(e.op()).name);
  }

  // Integers that 32 bits do not hold, or that are computed from elements of tensors or from
  // floats: they wrap at the width of their dtype, and may be divided by zero.
  bool is_data_arithmetic(Expr e) const {
    if (!expr::is_int(e.dtype()) || e.args().empty() || e.op() == EK::Read) return false;
    if (e.op() == EK::Cast && expr::is_float(e[0].dtype())) return true;
    if (e.op() == EK::Cast)
      return expr::bytes(e.dtype()) < expr::bytes(e[0].dtype()) || is_data_arithmetic(e[0]);
    if (e.dtype() != DType::I64 || is_wide(e)) return true;
    const bool is_division = e.op() == EK::FloorDiv || e.op() == EK::Mod;
    const bool is_natural = is_division && e[1].op() == EK::IntConst && e[1].integer() > 0;
    bool has_data = false;
    for (Expr a : e.args()) {
      has_data |= is_data_arithmetic(a);
      const bool is_element = a.op() == EK::Read || a.op() == EK::Cast;
      has_data |= is_element && !is_natural && e.op() != EK::Select;
    }
    return has_data;
  }

  // Coordinates and sizes have 32 bits, and so has a coordinate made of a tile's number and a place
  // in it. Products of them, or large multiples, may have more, unless it is one of few.
  bool is_wide(Expr e) const {
    const auto poly = expr::Poly::of(e);
    if (!poly) return true;
    return std::any_of(poly->terms().begin(), poly->terms().end(), [&](const auto& term) {
      constexpr int64_t kLargestTile = 4096;
      if (term.first.size() > 1) return true;
      return !term.first.empty() && std::abs(term.second) > kLargestTile &&
             !is_small_multiple(term.first[0], term.second);
    });
  }

  bool is_small_multiple(Expr atom, int64_t factor) const {
    constexpr int64_t kLargest = int64_t{1} << 24;
    const auto poly = expr::Poly::of(atom);
    if (!names_.facts || !poly || !names_.facts->is_nonnegative(*poly)) return false;
    const auto most = names_.facts->upper(*poly);
    const auto bound = most ? most->constant() : std::nullopt;
    return bound && *bound < kLargest && std::abs(factor) < kLargest / (*bound + 1);
  }

  std::string wide_text(Expr e) const {
    ExpressionNames names = names_;
    names.variable = [this](Expr var) {
      const std::string text = names_.variable(var);
      return var.dtype() == DType::I64 ? "((long long)" + text + ")" : text;
    };
    return typed_expression(e, names);
  }

  Text select(Expr e) {
    if (is_computed_always(e[1])) {
      return {fmt::format("choose({}, {}, {})", at(e[0], kTernary), at(e[1], kTernary),
                          at(e[2], kTernary)),
              kAtom};
    }
    return {at(e[0], kOr) + " ? " + at(e[1], kOr) + " : " + at(e[2], kTernary), kTernary};
  }

  Text infix(Expr e, std::string_view op, int strength, int right) {
    return {fmt::format("{} {} {}", at(e[0], strength), op, at(e[1], right)), strength};
  }

  // A constant factor of the argument costs nothing: it is a part of the coefficients.
  Text erf(Expr x) {
    for (size_t k = 0; k < 2 && x.op() == EK::Mul; ++k) {
      const bool is_factor =
          x[k].op() == EK::FloatConst && x[k].number() > 0x1p-20 && x[k].number() < 0x1p20;
      if (is_factor)
        return {fmt::format("erf_of({}, {})", at(x[1 - k], kTernary), x[k].number()), kAtom};
    }
    return {"erf_of(" + at(x, kTernary) + ")", kAtom};
  }

  // Reads memory, and only under conditions of its own.
  bool is_eager(Expr e) const {
    if (!names_.is_eager || expr::tensors_read(e).empty()) return false;
    std::unordered_set<Expr> guarded;
    bool ok = true;
    expr::for_each(e, [&](Expr x) {
      if (!is_guarded_read(x)) return;
      const Expr read = x[1];
      guarded.insert(read);
      for (Expr i : read.args()) ok &= expr::tensors_read(i).empty();
    });
    expr::for_each(e, [&](Expr x) {
      if (x.op() == EK::Read && names_.is_memory && names_.is_memory(x)) ok &= guarded.contains(x);
    });
    return ok && !guarded.empty();
  }

  // A special function of numbers that are in registers: computing it always costs less than a
  // branch around it, and lets what is the same for all elements leave the loop.
  bool is_computed_always(Expr e) const {
    if (e.dtype() != expr::DType::F32 || names_.is_accurate || !names_.is_memory) return false;
    bool has_function = false;
    bool has_memory = false;
    expr::for_each(e, [&](Expr x) {
      const EK k = x.op();
      has_function |= k == EK::Exp2 || k == EK::Exp || k == EK::Tanh || k == EK::Div ||
                      k == EK::Log || k == EK::Log2 || k == EK::Sigmoid || k == EK::Rsqrt ||
                      k == EK::Sqrt;
      has_memory |= k == EK::Read && names_.is_memory(x);
    });
    return has_function && !has_memory;
  }

  Text bitwise(Expr e, std::string_view op) {
    return {fmt::format("(({}) {} ({}))", at(e[0], kTernary), op, at(e[1], kTernary)), kAtom};
  }

  Text call(std::string_view function, Expr e) {
    std::string text = std::string(function) + "(";
    for (size_t i = 0; i < e.args().size(); ++i) text += (i ? ", " : "") + at(e[i], kTernary);
    return {text + ")", kAtom};
  }

  // C++ rounds towards zero, the language towards minus infinity: the same for what is not
  // negative.
  Text divide(Expr e, std::string_view op, std::string_view function) {
    const auto poly = expr::Poly::of(e[0]);
    if (names_.facts && poly && names_.facts->is_nonnegative(*poly))
      return infix(e, op, kMul, kMul + 1);
    // Shifts round towards minus infinity.
    const int64_t by = e[1].op() == EK::IntConst ? e[1].integer() : 0;
    if (by > 1 && (by & (by - 1)) == 0 && by < (int64_t{1} << 30)) {
      const std::string value = at(e[0], kUnary);
      return {op == "/"
                  ? fmt::format("({} >> {})", value, std::countr_zero(static_cast<uint64_t>(by)))
                  : fmt::format("({} & {})", value, by - 1),
              kAtom};
    }
    return call(function, e);
  }

  // Between number kinds, and rounding to a storage type. (The rounding at the root of a packed
  // tile is part of packing: elementwise.cc.)
  Text cast(Expr e) {
    if (!expr::is_float(e[0].dtype()) && is_half(e.dtype()))
      return {fmt::format("unpack_{0}(pack_{0}((float){1}, 0.f), 0)", expr::name(e.dtype()),
                          at(e[0], kUnary)),
              kAtom};
    if (expr::is_float(e.dtype()) && !expr::is_float(e[0].dtype())) {
      if (expr::bytes(e.dtype()) == 1)
        return {fmt::format("round_{}((float){})", expr::name(e.dtype()), at(e[0], kUnary)), kAtom};
      const std::string number = "(float)" + at(e[0], kUnary);
      if (e.dtype() == DType::TF32) return {fmt::format("round_tf32({})", number), kAtom};
      return {number, kUnary};
    }
    if (!expr::is_float(e.dtype()) && expr::is_float(e[0].dtype()))
      return {"(int)" + at(e[0], kUnary), kUnary};
    if (expr::is_float(e.dtype()) && expr::bytes(e.dtype()) == 1 && e[0].dtype() != e.dtype())
      return {fmt::format("round_{}({})", expr::name(e.dtype()), at(e[0], kTernary)), kAtom};
    if (e.dtype() == DType::BF16 && e[0].dtype() != DType::BF16)
      return {"unpack_bf16(pack_bf16(" + at(e[0], kTernary) + ", 0.f), 0)", kAtom};
    if (e.dtype() == DType::TF32 && e[0].dtype() != DType::TF32)
      return {fmt::format("round_tf32({})", at(e[0], kTernary)), kAtom};
    if (e.dtype() == DType::F16 && e[0].dtype() != DType::F16)
      return {"unpack_f16(pack_f16(" + at(e[0], kTernary) + ", 0.f), 0)", kAtom};
    return print(e[0]);
  }

  const ExpressionNames& names_;
};

}  // namespace

bool is_guarded_read(Expr e) {
  if (e.op() != EK::Select || e[1].op() != EK::Read) return false;
  if (e.dtype() == DType::Bool) return e[2].op() == EK::BoolConst;
  return (e.dtype() == DType::I32 || e.dtype() == DType::I64) && e[2].op() == EK::IntConst;
}

std::string float_literal(double value) {
  // Beyond the range of f32 it is infinite there; compilers refuse such a literal.
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded)) return rounded < 0 ? "-infinity()" : "infinity()";
  std::string text = fmt::format("{:.9g}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".";
  return text + "f";
}

std::string expression(Expr e, const ExpressionNames& names) {
  return Printer(names).at(e, kTernary);
}

}  // namespace nautilus::emit

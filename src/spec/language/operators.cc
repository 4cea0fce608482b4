// SPDX-License-Identifier: Apache-2.0
#include "spec/language/operators.h"

#include <fmt/format.h>

#include "expr/bounds/affine.h"
#include "expr/build.h"
#include "expr/rules/rules.h"
#include "expr/scalar_ops.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Syntax;
using ir::Expr;
using Form = Syntax::Kind;

Typed Operators::prefix(const Syntax& s, Typed x) {
  const bool is_bool = x.e.dtype() == DType::Bool;
  if ((s.text == "not") != is_bool) return wrong_dtype(s, x.e.dtype());
  return {scope_.pool.unary(is_bool ? Op::Not : Op::Neg, x.e), x.hold, x.has_size};
}

Typed Operators::binary(const Syntax& s, Typed x, Typed y) {
  expr::ExprPool& pool = scope_.pool;
  const Typed old_x = x;
  const Typed old_y = y;
  if (!promote(pool, x, y)) return mismatch(s, old_x, old_y);
  const DType d = x.e.dtype();
  const auto function = s.kind == Form::Call ? expr::function_op(s.text) : std::nullopt;
  const Op op = function ? *function : *expr::infix_op(s.text, d);
  const bool is_logic = op == Op::And || op == Op::Or;
  const bool is_equality = op == Op::Eq || op == Op::Ne;
  if (!is_equality && is_logic != (d == DType::Bool)) return wrong_dtype(s, d);
  if ((op == Op::Mod || is_bitwise(op)) && !is_int(d)) return wrong_dtype(s, d);
  if (op == Op::Pow) {
    x = as_float(pool, x);
    y = as_float(pool, y);
    if (!x || !y) return wrong_dtype(s, d);
  }
  if ((op == Op::FloorDiv || op == Op::Mod) && old_y.e.is_int(0)) {
    scope_.sink.report(Code::BadLiteral, s.args[1]->span, "division by zero");
    return {};
  }
  if (op == Op::FloorDiv && scope_.integer_context == 0 && !is_meant(s, {x, y}, {old_x, old_y}))
    return {};
  const Hold hold = is_comparison(op) ? Hold::Firm : x.hold;
  const bool has_size = old_x.has_size || old_y.has_size;
  const Expr e = pool.binary(op, x.e, y.e);
  // A quotient of static sizes is a static size: what divides by it has a number to divide by.
  const bool is_size = has_size && hold == Hold::Literal && is_int(e.dtype());
  const Expr number = is_size ? expr::fold(pool, e) : Expr();
  return {number ? number : e, hold, has_size};
}

bool Operators::is_meant(const Syntax& s, const Operands& promoted, const Operands& written) {
  const auto& [x, y] = promoted;
  const auto text = [&] { return scope_.sink.sources().text(s.args[1]->span); };
  // `1 / N`: a number divided by a size is 0 or 1 as an integer, never what is meant outside an
  // index.
  if (written.x.hold == Hold::Literal && written.y.hold == Hold::Index) {
    scope_.sink
        .report(Code::BadLiteral, s.span, "a number divided by a size is an integer division here")
        .with_help(fmt::format("write `f32({})` for the fraction", text()));
    return false;
  }
  if (x.hold == Hold::Literal && !written.x.has_size && x.e.op() == Op::IntConst &&
      y.e.op() == Op::IntConst && x.e.integer() % y.e.integer() != 0) {
    scope_.sink
        .report(Code::BadLiteral, s.span,
                fmt::format("`{} / {}` is an integer division and gives {}", x.e.integer(),
                            y.e.integer(), expr::floor_div(x.e.integer(), y.e.integer())))
        .with_help(fmt::format("write `{}.0 / {}` for the fraction", x.e.integer(), text()));
    return false;
  }
  return true;
}

Typed Operators::function(const Syntax& s, Op op, Typed x) {
  if (op == Op::Abs) {
    return x.e.dtype() == DType::Bool ? wrong_dtype(s, x.e.dtype())
                                      : Typed{scope_.pool.unary(op, x.e), x.hold};
  }
  const Typed f = as_float(scope_.pool, x);
  return f ? Typed{scope_.pool.unary(op, f.e), f.hold == Hold::Literal ? Hold::Firm : f.hold}
           : wrong_dtype(s, x.e.dtype());
}

Typed Operators::select(const Syntax& s, Typed condition, Typed x, Typed y) {
  if (condition.e.dtype() != DType::Bool) return wrong_dtype(s, condition.e.dtype());
  const Typed old_x = x;
  const Typed old_y = y;
  if (!promote(scope_.pool, x, y)) return mismatch(s, old_x, old_y);
  return {scope_.pool.select(condition.e, x.e, y.e), x.hold};
}

Typed Operators::mismatch(const Syntax& s, Typed x, Typed y) {
  auto& d = scope_.sink.report(
      Code::DTypeMismatch, s.name_span,
      fmt::format("`{}` of {} and {}", s.text, expr::name(x.e.dtype()), expr::name(y.e.dtype())));
  const size_t n = s.args.size();
  if (n >= 2) {
    d.also(s.args[n - 2]->span, std::string(expr::name(x.e.dtype())));
    d.also(s.args[n - 1]->span, std::string(expr::name(y.e.dtype())));
  }
  const bool has_bool = x.e.dtype() == DType::Bool || y.e.dtype() == DType::Bool;
  d.with_help(has_bool
                  ? "turn the condition into a number with `where(condition, 1, 0)`"
                  : "integers and floats do not mix silently: write a cast such as `f32(...)`");
  return {};
}

Typed Operators::wrong_dtype(const Syntax& s, DType dtype) {
  auto& d = scope_.sink.report(Code::WrongDType, s.name_span,
                               fmt::format("`{}` does not take {}", s.text, expr::name(dtype)));
  if (!s.args.empty()) d.also(s.args[0]->span, std::string(expr::name(dtype)));
  if (is_int(dtype)) d.with_help("write a cast, `f32(...)`");
  return {};
}

}  // namespace nautilus::spec

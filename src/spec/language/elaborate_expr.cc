// SPDX-License-Identifier: Apache-2.0
#include "spec/language/elaborate_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/nearest.h"
#include "expr/bounds/affine.h"
#include "expr/build.h"
#include "expr/print.h"
#include "expr/rules/rules.h"
#include "expr/scalar_ops.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Syntax;
using ir::Expr;
using Form = Syntax::Kind;

namespace {

constexpr int64_t kMaxVisits =
    200'000;  // syntax nodes visited for one equation, function bodies included
constexpr uint32_t kMaxExprDepth = 1500;
constexpr uint32_t kMaxTreeSize = 100'000;

}  // namespace

Typed ExprElaborator::elaborate(const Syntax& s) {
  if (++visits_ > kMaxVisits) {
    if (visits_ == kMaxVisits + 1) {
      sink_.report(Code::TooLong, s.span,
                   fmt::format("the equation expands to more than {} terms", kMaxVisits));
    }
    return fail();
  }
  Typed t = dispatch(s);
  if (t && !is_reasonable(t.e, s.span)) return fail();
  return t;
}

bool ExprElaborator::is_reasonable(Expr e, diag::Span span) {
  if (e.depth() <= kMaxExprDepth && e.tree_size() <= kMaxTreeSize) return true;
  sink_
      .report(e.depth() > kMaxExprDepth ? Code::TooDeep : Code::TooLong, span,
              fmt::format("the expression expands to {} terms, {} levels deep", e.tree_size(),
                          e.depth()))
      .with_help(fmt::format("the limits are {} terms and {} levels; name parts of it as equations",
                             kMaxTreeSize, kMaxExprDepth));
  return false;
}

Typed ExprElaborator::dispatch(const Syntax& s) {
  switch (s.kind) {
    case Form::Integer:
      return {pool_.integer(s.integer), Hold::Literal};
    case Form::Float:
      return {pool_.floating(s.number), Hold::Literal};
    case Form::Inf:
      return {pool_.floating(std::numeric_limits<double>::infinity()), Hold::Literal};
    case Form::Bool:
      return {pool_.boolean(s.integer != 0)};
    case Form::Name:
      return name(s);
    case Form::Index:
      return read(s);
    case Form::Call:
      return call(s);
    case Form::Prefix:
      return prefix(s);
    case Form::Infix:
      return infix(s);
    case Form::Reduce:
      return reduce(s);
    case Form::Let:
      return let(s);
    case Form::Repeat:
      return repeat(s);
    case Form::Table:
      return table(s);
  }
  return fail();
}

Expr ExprElaborator::find_axis(std::string_view name) const {
  const auto& axes = frames_.back().axes;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    if (it->first == name) return it->second;
  }
  return {};
}

std::vector<Expr> ExprElaborator::find_axes(std::string_view name) const {
  if (!is_function_axis(name)) {
    const Expr axis = find_axis(name);
    return axis ? std::vector{axis} : std::vector<Expr>();
  }
  std::vector<Expr> out;
  for (const auto& [text, var] : frames_.back().axes) {
    if (text == name) out.push_back(var);
  }
  return out;
}

bool ExprElaborator::is_function_axis(std::string_view name) const {
  const FunctionSyntax* f = frames_.back().function;
  return f && std::any_of(f->axes.begin(), f->axes.end(),
                          [&](const NameSyntax& a) { return a.text == name; });
}

const Symbol* ExprElaborator::find_function(std::string_view name) const {
  const FunctionSyntax* caller = frames_.back().function;
  const Symbol* own = caller && caller->is_library ? nullptr : symbols_.find(name);
  return own ? own : library_.find(name);
}

Typed ExprElaborator::name(const Syntax& s) {
  if (const auto it = frames_.back().values.find(s.text); it != frames_.back().values.end())
    return it->second;
  if (const Expr axis = find_axis(s.text)) {
    if (find_axes(s.text).size() == 1) return {axis, Hold::Index};
    sink_
        .report(Code::WrongArguments, s.span,
                fmt::format("`{}` stands for {} axes here, and is used as a number", s.text,
                            find_axes(s.text).size()))
        .with_help("a function of several axes can only reduce over them; call it with one");
    return fail();
  }
  const Symbol* symbol = symbols_.find(s.text);
  if (!symbol && (library_.find(s.text) || expr::function_op(s.text))) {
    sink_
        .report(Code::WrongKind, s.span,
                fmt::format("`{}` is a function, used here as a number", s.text))
        .with_help(fmt::format("write its arguments, `{}(...)`", s.text));
    return fail();
  }
  if (!symbol) {
    // A longer name that is close to a known value is a typing error, not a missing axis.
    const auto near = base::nearest_name(s.text, symbols_.names());
    if (!near.empty() && s.text.size() > 2 && !find_axis(near)) {
      sink_.report(Code::UndefinedName, s.name_span, fmt::format("`{}` is not defined", s.text))
          .with_help(fmt::format("did you mean `{}`?", near));
      return fail();
    }
    return undefined(s);
  }
  switch (symbol->kind) {
    case Symbol::Kind::Size:
      return {symbol->value, symbol->value.is_const() ? Hold::Literal : Hold::Index, true};
    case Symbol::Kind::Scalar:
      return {widen(pool_, symbol->value)};
    case Symbol::Kind::Tensor:
    case Symbol::Kind::Function:
      sink_
          .report(Code::WrongKind, s.span,
                  fmt::format("`{}` is {}, used here as a number", s.text, describe(symbol->kind)))
          .also(symbol->span, "defined here")
          .with_help(symbol->kind == Symbol::Kind::Tensor
                         ? fmt::format("write its indices, `{}[...]`", s.text)
                         : fmt::format("write its arguments, `{}(...)`", s.text));
      return fail();
  }
  return fail();
}

Expr ExprElaborator::index(const Syntax& s, std::string_view what) {
  ++integer_context_;
  const Typed t = elaborate(s);
  --integer_context_;
  if (!t) return {};
  if (!is_int(t.e.dtype())) {
    sink_
        .report(Code::NonIntegerIndex, s.span,
                fmt::format("{} must be an integer, this is {}", what, expr::name(t.e.dtype())))
        .with_help(t.e.dtype() == DType::Bool ? "choose by the condition, `where(condition, 1, 0)`"
                                              : "cast it, `i64(...)`, if truncation is meant");
    return {};
  }
  return pool_.cast(DType::I64, t.e);
}

bool ExprElaborator::has_axis(Expr e) const {
  const auto vars = expr::free_vars(e);
  return std::any_of(vars.begin(), vars.end(), [&](Expr v) { return scope_.is_axis(v); });
}

bool ExprElaborator::is_size(const Syntax& s, Expr e) {
  if (!has_axis(e) && !expr::has_reduce(e) && expr::tensors_read(e).empty()) return true;
  sink_.report(Code::BadStatement, s.span, "a size must be an expression of sizes and scalars")
      .label(has_axis(e) ? "depends on an axis" : "depends on the elements of a tensor")
      .with_help(
          "let the axis run over a fixed range and guard the body, `where(j < ..., ..., 0)`");
  return false;
}

Expr ExprElaborator::elaborate_size(const Syntax& s) {
  const Expr e = index(s, "a size");
  return e && is_size(s, e) ? expr::canonical_index(pool_, e) : Expr();
}

Typed ExprElaborator::read(const Syntax& s) {
  const Symbol* symbol = symbols_.find(s.text);
  if (!symbol) return undefined(s);
  if (symbol->kind != Symbol::Kind::Tensor) {
    sink_
        .report(Code::WrongKind, s.name_span,
                fmt::format("`{}` is {}, used here as a tensor", s.text, describe(symbol->kind)))
        .also(symbol->span, "defined here");
    return fail();
  }
  if (!symbol->is_known) return fail();  // its equation has been reported
  const auto& type = symbol->type;
  if (s.args.size() != type.dims.size()) {
    sink_
        .report(Code::WrongRank, s.span,
                fmt::format("`{}` has {}, {} given", s.text,
                            diag::counted(type.dims.size(), "dimension", "dimensions"),
                            diag::counted(s.args.size(), "index is", "indices are")))
        .also(symbol->span, "defined here");
    return fail();
  }
  std::vector<Expr> indices;
  for (size_t k = 0; k < s.args.size(); ++k) {
    const Expr i = index(*s.args[k], "an index");
    if (!i) return fail();
    const bool is_step = symbol->state && symbol->state->is_open && symbol->state->along == k &&
                         i.op() == Op::Add && scope_.is_axis(i[0]) && i[1].is_const();
    if ((is_step || scope_.is_axis(i)) && type.dims[k]) {
      scope_.use(
          is_step ? i[0] : i, type.dims[k], s.args[k]->span,
          fmt::format("dimension {} of `{}` is {}", k + 1, s.text, expr::to_string(type.dims[k])));
    }
    indices.push_back(i);
  }
  const Expr e = pool_.read(pool_.name(s.text), type.dtype, indices);
  read_spans_.emplace(e, s.span);
  return symbol->state ? read_state(*symbol, e) : Typed{widen(pool_, e)};
}

Typed ExprElaborator::read_state(const Symbol& symbol, Expr read) {
  const StateSymbol& state = *symbol.state;
  if (state.is_number) return {pool_.integer(1), Hold::Literal};
  const Expr at = read[state.along];
  const Expr value = widen(pool_, read);
  if (scope_.is_axis(at)) return {value};
  expr::Substitution map;
  for (size_t k = 0; k < state.axes.size(); ++k) {
    if (state.axes[k]) map.emplace(state.axes[k], read[k]);
  }
  const Expr init =
      widen(pool_, pool_.cast(read.dtype(), expr::substitute(pool_, state.init, map)));
  if (at.op() == Op::IntConst && state.is_up && at.integer() == -1) return {init};
  const Expr extent = symbol.type.dims[state.along];
  if (!state.is_up && !extent) return {value};  // while extents are looked for
  if (!state.is_up && expr::same_index(at, extent)) return {init};
  const Expr is_step =
      state.is_up ? pool_.binary(Op::Ge, at, pool_.integer(0)) : pool_.binary(Op::Lt, at, extent);
  return {pool_.select(is_step, value, init)};
}

Typed ExprElaborator::prefix(const Syntax& s) {
  const Typed x = elaborate(*s.args[0]);
  if (!x) return fail();
  const bool is_bool = x.e.dtype() == DType::Bool;
  if ((s.text == "not") != is_bool) return wrong_dtype(s, x.e.dtype());
  return {pool_.unary(is_bool ? Op::Not : Op::Neg, x.e), x.hold, x.has_size};
}

Typed ExprElaborator::infix(const Syntax& s) {
  const Typed x = elaborate(*s.args[0]);
  if (!x) return fail();  // the other operand often fails for the same reason
  // `and` and `or` do not read their right operand where the left one decides.
  const bool is_guard = s.text == "and" || s.text == "or";
  guards_ += is_guard;
  const Typed y = elaborate(*s.args[1]);
  guards_ -= is_guard;
  return y ? binary(s, x, y) : fail();
}

Typed ExprElaborator::binary(const Syntax& s, Typed x, Typed y) {
  const Typed old_x = x;
  const Typed old_y = y;
  if (!promote(pool_, x, y)) return mismatch(s, old_x, old_y);
  const DType d = x.e.dtype();
  const auto function = s.kind == Form::Call ? expr::function_op(s.text) : std::nullopt;
  const Op op = function ? *function : *expr::infix_op(s.text, d);
  const bool is_logic = op == Op::And || op == Op::Or;
  const bool is_equality = op == Op::Eq || op == Op::Ne;
  if (!is_equality && is_logic != (d == DType::Bool)) return wrong_dtype(s, d);
  if ((op == Op::Mod || is_bitwise(op)) && !is_int(d)) return wrong_dtype(s, d);
  if (op == Op::Pow) {
    x = as_float(pool_, x);
    y = as_float(pool_, y);
    if (!x || !y) return wrong_dtype(s, d);
  }
  if (op == Op::FloorDiv || op == Op::Mod) {
    if (old_y.e.is_int(0)) {
      sink_.report(Code::BadLiteral, s.args[1]->span, "division by zero");
      return fail();
    }
  }
  // `1 / N`: a number divided by a size is 0 or 1 as an integer, never what is meant outside an
  // index.
  if (op == Op::FloorDiv && integer_context_ == 0 && old_x.hold == Hold::Literal &&
      old_y.hold == Hold::Index) {
    sink_.report(Code::BadLiteral, s.span, "a number divided by a size is an integer division here")
        .with_help(
            fmt::format("write `f32({})` for the fraction", sink_.sources().text(s.args[1]->span)));
    return fail();
  }
  if (op == Op::FloorDiv && integer_context_ == 0 && x.hold == Hold::Literal && !old_x.has_size &&
      x.e.op() == Op::IntConst && y.e.op() == Op::IntConst && x.e.integer() % y.e.integer() != 0) {
    sink_
        .report(Code::BadLiteral, s.span,
                fmt::format("`{} / {}` is an integer division and gives {}", x.e.integer(),
                            y.e.integer(), expr::floor_div(x.e.integer(), y.e.integer())))
        .with_help(fmt::format("write `{}.0 / {}` for the fraction", x.e.integer(),
                               sink_.sources().text(s.args[1]->span)));
    return fail();
  }
  const Hold hold = is_comparison(op) ? Hold::Firm : x.hold;
  const bool has_size = old_x.has_size || old_y.has_size;
  const Expr e = pool_.binary(op, x.e, y.e);
  // A quotient of static sizes is a static size: what divides by it has a number to divide by.
  const bool is_size = has_size && hold == Hold::Literal && is_int(e.dtype());
  const Expr number = is_size ? expr::fold(pool_, e) : Expr();
  return {number ? number : e, hold, has_size};
}

Typed ExprElaborator::call(const Syntax& s) {
  if (const auto dtype = expr::parse_dtype(s.text)) return cast(s, *dtype);
  if (const auto op = expr::function_op(s.text)) {
    if (!s.axes.empty()) {
      sink_.report(Code::WrongArguments, s.span, fmt::format("`{}` takes no axes", s.text));
      return fail();
    }
    return call_builtin(s, *op);
  }
  const Symbol* symbol = find_function(s.text);
  if (!symbol) return undefined(s);
  if (symbol->kind != Symbol::Kind::Function) {
    sink_
        .report(Code::WrongKind, s.name_span,
                fmt::format("`{}` is {}, used here as a function", s.text, describe(symbol->kind)))
        .also(symbol->span, "defined here");
    return fail();
  }
  return call_function(s, *symbol->function);
}

Typed ExprElaborator::call_builtin(const Syntax& s, Op op) {
  const auto wanted = static_cast<size_t>(expr::info(op).arity);
  if (s.args.size() != wanted) {
    sink_.report(Code::WrongArguments, s.span,
                 fmt::format("`{}` takes {} argument{}, {} given", s.text, wanted,
                             wanted == 1 ? "" : "s", s.args.size()));
    return fail();
  }
  if (op == Op::Select) return select(s);
  const Typed x = elaborate(*s.args[0]);
  if (!x) return fail();
  if (wanted == 2) {
    const Typed y = elaborate(*s.args[1]);
    return y ? binary(s, x, y) : fail();
  }
  if (op == Op::Abs) {
    return x.e.dtype() == DType::Bool ? wrong_dtype(s, x.e.dtype())
                                      : Typed{pool_.unary(op, x.e), x.hold};
  }
  const Typed f = as_float(pool_, x);
  return f ? Typed{pool_.unary(op, f.e), f.hold == Hold::Literal ? Hold::Firm : f.hold}
           : wrong_dtype(s, x.e.dtype());
}

Typed ExprElaborator::select(const Syntax& s) {
  const Typed c = elaborate(*s.args[0]);
  ++guards_;
  Typed x = elaborate(*s.args[1]);
  Typed y = elaborate(*s.args[2]);
  --guards_;
  if (!c || !x || !y) return fail();
  if (c.e.dtype() != DType::Bool) return wrong_dtype(s, c.e.dtype());
  const Typed old_x = x;
  const Typed old_y = y;
  if (!promote(pool_, x, y)) return mismatch(s, old_x, old_y);
  return {pool_.select(c.e, x.e, y.e), x.hold};
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
#include "spec/language/elaborate_expr.h"

#include <fmt/format.h>

#include <limits>

#include "base/nearest.h"
#include "expr/bounds/affine.h"
#include "expr/build.h"
#include "expr/print.h"
#include "expr/walk.h"

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
      scope_.sink.report(Code::TooLong, s.span,
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
  scope_.sink
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
      return {scope_.pool.integer(s.integer), Hold::Literal};
    case Form::Float:
      return {scope_.pool.floating(s.number), Hold::Literal};
    case Form::Inf:
      return {scope_.pool.floating(std::numeric_limits<double>::infinity()), Hold::Literal};
    case Form::Bool:
      return {scope_.pool.boolean(s.integer != 0)};
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
      return reductions_.reduce(s);
    case Form::Let:
      return let(s);
    case Form::Repeat:
      return repeat(s);
    case Form::Table:
      return table(s);
  }
  return fail();
}

Typed ExprElaborator::name(const Syntax& s) {
  const auto& values = scope_.names.values();
  if (const auto it = values.find(s.text); it != values.end()) return it->second;
  if (const Expr axis = scope_.names.find_axis(s.text)) {
    const size_t count = scope_.names.find_axes(s.text).size();
    if (count == 1) return {axis, Hold::Index};
    scope_.sink
        .report(Code::WrongArguments, s.span,
                fmt::format("`{}` stands for {} axes here, and is used as a number", s.text, count))
        .with_help("a function of several axes can only reduce over them; call it with one");
    return fail();
  }
  const Symbol* symbol = scope_.symbols.find(s.text);
  if (!symbol) return unknown(s);
  switch (symbol->kind) {
    case Symbol::Kind::Size:
      return {symbol->value, symbol->value.is_const() ? Hold::Literal : Hold::Index, true};
    case Symbol::Kind::Scalar:
      return {widen(scope_.pool, symbol->value)};
    case Symbol::Kind::Tensor:
    case Symbol::Kind::Function:
      scope_.sink
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

Typed ExprElaborator::unknown(const Syntax& s) {
  if (scope_.names.is_library(s.text) || expr::function_op(s.text)) {
    scope_.sink
        .report(Code::WrongKind, s.span,
                fmt::format("`{}` is a function, used here as a number", s.text))
        .with_help(fmt::format("write its arguments, `{}(...)`", s.text));
    return fail();
  }
  // A longer name that is close to a known value is a typing error, not a missing axis.
  const auto near = base::nearest_name(s.text, scope_.symbols.names());
  if (near.empty() || s.text.size() <= 2 || scope_.names.find_axis(near)) return undefined(s);
  scope_.sink.report(Code::UndefinedName, s.name_span, fmt::format("`{}` is not defined", s.text))
      .with_help(fmt::format("did you mean `{}`?", near));
  return fail();
}

Typed ExprElaborator::undefined(const Syntax& s) {
  scope_.names.report_undefined(s, scope_.axes.is_equation(), scope_.sink);
  return fail();
}

Expr ExprElaborator::elaborate_index(const Syntax& s, std::string_view what) {
  ++scope_.integer_context;
  const Typed t = elaborate(s);
  --scope_.integer_context;
  if (!t) return {};
  if (!is_int(t.e.dtype())) {
    scope_.sink
        .report(Code::NonIntegerIndex, s.span,
                fmt::format("{} must be an integer, this is {}", what, expr::name(t.e.dtype())))
        .with_help(t.e.dtype() == DType::Bool ? "choose by the condition, `where(condition, 1, 0)`"
                                              : "cast it, `i64(...)`, if truncation is meant");
    return {};
  }
  return scope_.pool.cast(DType::I64, t.e);
}

bool ExprElaborator::is_size(const Syntax& s, Expr e) {
  if (!scope_.axes.has_axis(e) && !expr::has_reduce(e) && expr::tensors_read(e).empty())
    return true;
  scope_.sink
      .report(Code::BadStatement, s.span, "a size must be an expression of sizes and scalars")
      .label(scope_.axes.has_axis(e) ? "depends on an axis" : "depends on the elements of a tensor")
      .with_help(
          "let the axis run over a fixed range and guard the body, `where(j < ..., ..., 0)`");
  return false;
}

Expr ExprElaborator::elaborate_size(const Syntax& s) {
  const Expr e = elaborate_index(s, "a size");
  return e && is_size(s, e) ? expr::canonical_index(scope_.pool, e) : Expr();
}

Typed ExprElaborator::read(const Syntax& s) {
  const Symbol* symbol = scope_.symbols.find(s.text);
  if (!symbol) return undefined(s);
  if (symbol->kind != Symbol::Kind::Tensor) {
    scope_.sink
        .report(Code::WrongKind, s.name_span,
                fmt::format("`{}` is {}, used here as a tensor", s.text, describe(symbol->kind)))
        .also(symbol->span, "defined here");
    return fail();
  }
  if (!symbol->is_known) return fail();  // its equation has been reported
  const auto& type = symbol->type;
  if (s.args.size() != type.dims.size()) {
    scope_.sink
        .report(Code::WrongRank, s.span,
                fmt::format("`{}` has {}, {} given", s.text,
                            diag::counted(type.dims.size(), "dimension", "dimensions"),
                            diag::counted(s.args.size(), "index is", "indices are")))
        .also(symbol->span, "defined here");
    return fail();
  }
  std::vector<Expr> indices;
  for (size_t k = 0; k < s.args.size(); ++k) {
    const Expr i = elaborate_index(*s.args[k], "an index");
    if (!i) return fail();
    const bool is_step = symbol->state && symbol->state->is_open && symbol->state->along == k &&
                         i.op() == Op::Add && scope_.axes.is_axis(i[0]) && i[1].is_const();
    if ((is_step || scope_.axes.is_axis(i)) && type.dims[k]) {
      scope_.axes.use(
          is_step ? i[0] : i, type.dims[k], s.args[k]->span,
          fmt::format("dimension {} of `{}` is {}", k + 1, s.text, expr::to_string(type.dims[k])));
    }
    indices.push_back(i);
  }
  const Expr e = scope_.pool.read(scope_.pool.name(s.text), type.dtype, indices);
  scope_.reads.add(e, s.span);
  return symbol->state ? read_state(*symbol, e) : Typed{widen(scope_.pool, e)};
}

Typed ExprElaborator::read_state(const Symbol& symbol, Expr read) {
  const StateSymbol& state = *symbol.state;
  if (state.is_number) return {scope_.pool.integer(1), Hold::Literal};
  const Expr at = read[state.along];
  const Expr value = widen(scope_.pool, read);
  if (scope_.axes.is_axis(at)) return {value};
  expr::Substitution map;
  for (size_t k = 0; k < state.axes.size(); ++k) {
    if (state.axes[k]) map.emplace(state.axes[k], read[k]);
  }
  const Expr init = widen(
      scope_.pool, scope_.pool.cast(read.dtype(), expr::substitute(scope_.pool, state.init, map)));
  if (at.op() == Op::IntConst && state.is_up && at.integer() == -1) return {init};
  const Expr extent = symbol.type.dims[state.along];
  if (!state.is_up && !extent) return {value};  // while extents are looked for
  if (!state.is_up && expr::same_index(at, extent)) return {init};
  const Expr is_step = state.is_up ? scope_.pool.binary(Op::Ge, at, scope_.pool.integer(0))
                                   : scope_.pool.binary(Op::Lt, at, extent);
  return {scope_.pool.select(is_step, value, init)};
}

Typed ExprElaborator::prefix(const Syntax& s) {
  const Typed x = elaborate(*s.args[0]);
  return x ? operators_.prefix(s, x) : fail();
}

Typed ExprElaborator::infix(const Syntax& s) {
  const Typed x = elaborate(*s.args[0]);
  if (!x) return fail();  // the other operand often fails for the same reason
  // `and` and `or` do not read their right operand where the left one decides.
  const bool is_guard = s.text == "and" || s.text == "or";
  scope_.guards += is_guard;
  const Typed y = elaborate(*s.args[1]);
  scope_.guards -= is_guard;
  return y ? operators_.binary(s, x, y) : fail();
}

}  // namespace nautilus::spec

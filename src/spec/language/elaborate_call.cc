// SPDX-License-Identifier: Apache-2.0
// Calls and lets; a part of elaborate_expr.h.
#include <fmt/format.h>

#include <algorithm>

#include "expr/build.h"
#include "expr/walk.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Syntax;
using ir::Expr;

namespace {

constexpr size_t kMaxCalls = 64;  // calls inside calls

}  // namespace

Typed ExprElaborator::call(const Syntax& s) {
  if (const auto dtype = expr::parse_dtype(s.text)) return cast(s, *dtype);
  if (const auto op = expr::function_op(s.text)) {
    if (!s.axes.empty()) {
      scope_.sink.report(Code::WrongArguments, s.span, fmt::format("`{}` takes no axes", s.text));
      return fail();
    }
    return call_builtin(s, *op);
  }
  const Symbol* symbol = scope_.names.find_function(s.text);
  if (!symbol) return undefined(s);
  if (symbol->kind != Symbol::Kind::Function) {
    scope_.sink
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
    scope_.sink.report(Code::WrongArguments, s.span,
                       fmt::format("`{}` takes {} argument{}, {} given", s.text, wanted,
                                   wanted == 1 ? "" : "s", s.args.size()));
    return fail();
  }
  if (op == Op::Select) return select(s);
  const Typed x = elaborate(*s.args[0]);
  if (!x) return fail();
  if (wanted == 2) {
    const Typed y = elaborate(*s.args[1]);
    return y ? operators_.binary(s, x, y) : fail();
  }
  return operators_.function(s, op, x);
}

Typed ExprElaborator::select(const Syntax& s) {
  const Typed c = elaborate(*s.args[0]);
  ++scope_.guards;
  const Typed x = elaborate(*s.args[1]);
  const Typed y = elaborate(*s.args[2]);
  --scope_.guards;
  return c && x && y ? operators_.select(s, c, x, y) : fail();
}

Typed ExprElaborator::let(const Syntax& s) {
  const Typed value = elaborate(*s.args[0]);
  if (!value || !scope_.names.can_bind(s.text, s.name_span, scope_.sink)) return fail();
  const Occurrences uses = occurrences(*s.args[1], s.text);
  scope_.names.values().emplace(s.text, taken_out_.share(value, s.text, uses));
  const Typed body = elaborate(*s.args[1]);
  scope_.names.values().erase(s.text);
  return body;
}

Typed ExprElaborator::cast(const Syntax& s, DType dtype) {
  if (s.args.size() != 1 || !s.axes.empty()) {
    scope_.sink.report(Code::WrongArguments, s.span,
                       fmt::format("the cast `{}` takes one argument", s.text));
    return fail();
  }
  const Typed x = elaborate(*s.args[0]);
  return x ? Typed{widen(scope_.pool, scope_.pool.cast(dtype, x.e))} : fail();
}

// Gives the axes of a function their meaning: axes of the caller, or new ones, which the arguments
// see as well.
bool ExprElaborator::bind_axes(const Syntax& s, const FunctionSyntax& f, NameScope::Frame& frame) {
  for (size_t k = 0; k < s.axes.size(); ++k) {
    const expr::SyntaxAxis& axis = s.axes[k];
    std::vector<Expr> vars = scope_.names.find_axes(axis.name);
    Expr extent;
    if (axis.extent && !(extent = elaborate_size(*axis.extent))) return false;
    if (!vars.empty() && extent) {
      scope_.sink
          .report(Code::AxisConflict, axis.span, fmt::format("`{}` is taken already", axis.name))
          .label("an axis of this name is in scope")
          .with_help("leave its extent away, or give the call an axis name of its own");
      return false;
    }
    const auto is_same = [&](const expr::SyntaxAxis& other) { return other.name == axis.name; };
    if (std::any_of(s.axes.begin(), s.axes.begin() + static_cast<long>(k), is_same)) {
      scope_.sink.report(Code::AxisConflict, axis.span,
                         fmt::format("the axis `{}` stands twice in this call", axis.name));
      return false;
    }
    if (vars.empty()) {
      if (const Symbol* symbol = scope_.symbols.find(axis.name)) {
        scope_.sink.report(
            Code::AxisConflict, axis.span,
            fmt::format("`{}` is {}, not an axis", axis.name, describe(symbol->kind)));
        return false;
      }
      vars = {scope_.axes.add_root(axis.name, axis.span, extent)};
      bind_axis(axis.name, vars[0]);
    }
    for (Expr var : vars) frame.axes.emplace_back(f.axes[std::min(k, f.axes.size() - 1)].text, var);
  }
  return true;
}

bool ExprElaborator::can_call(const Syntax& s, const FunctionSyntax& f) {
  // The last axis of a function stands for all remaining axes.
  const bool has_axes = f.axes.empty() ? s.axes.empty() : s.axes.size() >= f.axes.size();
  if (s.args.size() != f.params.size() || !has_axes) {
    scope_.sink
        .report(Code::WrongArguments, s.span,
                fmt::format("`{}` takes {} and {}; {} and {} given", s.text,
                            diag::counted(f.axes.size(), "axis", "axes"),
                            diag::counted(f.params.size(), "argument", "arguments"), s.axes.size(),
                            s.args.size()))
        .also(f.name.span, "defined here");
    return false;
  }
  const auto& frames = scope_.names.frames();
  for (size_t k = 0; k < frames.size(); ++k) {
    if (frames[k].function != &f) continue;
    std::string chain;
    for (size_t i = k; i < frames.size(); ++i)
      chain += fmt::format("`{}` calls ", frames[i].function->name.text);
    scope_.sink
        .report(Code::Cycle, s.span,
                fmt::format("a function cannot be recursive: {}`{}`", chain, s.text))
        .also(f.name.span, "defined here");
    return false;
  }
  if (frames.size() <= kMaxCalls) return true;
  scope_.sink.report(Code::TooDeep, s.span,
                     fmt::format("calls nest deeper than {} levels", kMaxCalls));
  return false;
}

bool ExprElaborator::bind_arguments(const Syntax& s, const FunctionSyntax& f,
                                    NameScope::Frame& frame) {
  bool ok = true;
  for (size_t k = 0; k < f.params.size(); ++k) {
    const Typed value = elaborate(*s.args[k]);
    if (!value) {
      ok = false;
      continue;
    }
    const std::string_view name = f.params[k].text;
    frame.values.emplace(name, taken_out_.share(value, name, occurrences(*f.body, name)));
  }
  return ok;
}

Typed ExprElaborator::call_function(const Syntax& s, const FunctionSyntax& f) {
  if (!can_call(s, f)) return fail();
  NameScope::Frame frame;
  frame.function = &f;
  const size_t visible = scope_.names.axis_count();
  if (!bind_axes(s, f, frame)) return fail();
  const bool ok = bind_arguments(s, f, frame);
  const std::vector<NameScope::Axis> local = scope_.names.unbind_axes(visible);
  if (!ok) return fail();
  scope_.names.enter(std::move(frame));
  const size_t reported = scope_.sink.all().size();
  const Typed result = elaborate(*f.body);
  scope_.names.leave();
  if (!result) {
    // Say which call led into the function: the labels inside it point at library text.
    if (scope_.sink.all().size() > reported && scope_.names.frames().size() == 1) {
      scope_.sink.last().also(s.span, fmt::format("in this call of `{}`", s.text));
    }
    return fail();
  }
  for (const auto& [axis, var] : local) {
    if (!expr::depends_on(result.e, var)) continue;
    scope_.sink
        .report(Code::UnboundIndex, s.span,
                fmt::format("the result of `{}` still depends on `{}`, which no axis binds", s.text,
                            axis))
        .with_help(
            fmt::format("put `{}` among the axes of the left side, or reduce over it", axis));
    return fail();
  }
  return result;
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Functions, lets and what they share; the other half of elaborate_expr.h.
#include <fmt/format.h>

#include <algorithm>

#include "expr/walk.h"
#include "ir/flat_name.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Syntax;
using ir::Expr;
using Form = Syntax::Kind;

namespace {

constexpr size_t kMaxCalls = 64;  // calls inside calls

bool is_leaf(Expr e) {
  return e.args().empty() || e.op() == Op::Read || (e.op() == Op::Cast && is_leaf(e[0]));
}

}  // namespace

Expr ExprElaborator::rename(Expr e, Expr from, Expr to) {
  const expr::Substitution map = {{from, to}};
  expr::for_each(e, [&](Expr r) {
    if (r.op() != Op::Read) return;
    if (const auto it = read_spans_.find(r); it != read_spans_.end()) {
      const diag::Span span = it->second;
      read_spans_.emplace(expr::substitute(pool_, r, map), span);
    }
  });
  return expr::substitute(pool_, e, map);
}

bool ExprElaborator::can_bind(std::string_view name, diag::Span span) {
  if (!frames_.back().values.contains(name) && !find_axis(name)) return true;
  sink_.report(Code::Duplicate, span,
               fmt::format("`{}` is the name of a parameter, let or axis already", name));
  return false;
}

Typed ExprElaborator::let(const Syntax& s) {
  const Typed value = elaborate(*s.args[0]);
  if (!value || !can_bind(s.text, s.name_span)) return fail();
  const Occurrences uses = occurrences(*s.args[1], s.text);
  auto& values = frames_.back().values;
  values.emplace(s.text, share(value, s.text, uses.count, uses.is_always_guarded));
  const Typed body = elaborate(*s.args[1]);
  frames_.back().values.erase(s.text);
  return body;
}

Typed ExprElaborator::cast(const Syntax& s, DType dtype) {
  if (s.args.size() != 1 || !s.axes.empty()) {
    sink_.report(Code::WrongArguments, s.span,
                 fmt::format("the cast `{}` takes one argument", s.text));
    return fail();
  }
  const Typed x = elaborate(*s.args[0]);
  return x ? Typed{widen(pool_, pool_.cast(dtype, x.e))} : fail();
}

// Gives the axes of a function their meaning: axes of the caller, or new ones, which the arguments
// see as well.
bool ExprElaborator::bind_axes(const Syntax& s, const FunctionSyntax& f, Frame& frame) {
  for (size_t k = 0; k < s.axes.size(); ++k) {
    const expr::SyntaxAxis& axis = s.axes[k];
    std::vector<Expr> vars = find_axes(axis.name);
    Expr extent;
    if (axis.extent && !(extent = elaborate_size(*axis.extent))) return false;
    if (!vars.empty() && extent) {
      sink_.report(Code::AxisConflict, axis.span, fmt::format("`{}` is taken already", axis.name))
          .label("an axis of this name is in scope")
          .with_help("leave its extent away, or give the call an axis name of its own");
      return false;
    }
    const auto is_same = [&](const expr::SyntaxAxis& other) { return other.name == axis.name; };
    if (std::any_of(s.axes.begin(), s.axes.begin() + static_cast<long>(k), is_same)) {
      sink_.report(Code::AxisConflict, axis.span,
                   fmt::format("the axis `{}` stands twice in this call", axis.name));
      return false;
    }
    if (vars.empty()) {
      if (const Symbol* symbol = symbols_.find(axis.name)) {
        sink_.report(Code::AxisConflict, axis.span,
                     fmt::format("`{}` is {}, not an axis", axis.name, describe(symbol->kind)));
        return false;
      }
      vars = {scope_.add_root(axis.name, axis.span, extent)};
      bind_axis(axis.name, vars[0]);
    }
    for (Expr var : vars) frame.axes.emplace_back(f.axes[std::min(k, f.axes.size() - 1)].text, var);
  }
  return true;
}

Typed ExprElaborator::call_function(const Syntax& s, const FunctionSyntax& f) {
  // The last axis of a function stands for all remaining axes.
  const bool has_axes = f.axes.empty() ? s.axes.empty() : s.axes.size() >= f.axes.size();
  if (s.args.size() != f.params.size() || !has_axes) {
    sink_
        .report(Code::WrongArguments, s.span,
                fmt::format("`{}` takes {} and {}; {} and {} given", s.text,
                            diag::counted(f.axes.size(), "axis", "axes"),
                            diag::counted(f.params.size(), "argument", "arguments"), s.axes.size(),
                            s.args.size()))
        .also(f.name.span, "defined here");
    return fail();
  }
  for (size_t k = 0; k < frames_.size(); ++k) {
    if (frames_[k].function != &f) continue;
    std::string chain;
    for (size_t i = k; i < frames_.size(); ++i)
      chain += fmt::format("`{}` calls ", frames_[i].function->name.text);
    sink_
        .report(Code::Cycle, s.span,
                fmt::format("a function cannot be recursive: {}`{}`", chain, s.text))
        .also(f.name.span, "defined here");
    return fail();
  }
  if (frames_.size() > kMaxCalls) {
    sink_.report(Code::TooDeep, s.span, fmt::format("calls nest deeper than {} levels", kMaxCalls));
    return fail();
  }
  Frame frame;
  frame.function = &f;
  frame.call = s.span;
  const size_t visible = frames_.back().axes.size();
  if (!bind_axes(s, f, frame)) return fail();
  bool ok = true;
  for (size_t k = 0; k < f.params.size(); ++k) {
    const Typed value = elaborate(*s.args[k]);
    if (!value) {
      ok = false;
      continue;
    }
    const Occurrences uses = occurrences(*f.body, f.params[k].text);
    frame.values.emplace(f.params[k].text,
                         share(value, f.params[k].text, uses.count, uses.is_always_guarded));
  }
  const std::vector<std::pair<std::string_view, Expr>> local(
      frames_.back().axes.begin() + static_cast<long>(visible), frames_.back().axes.end());
  frames_.back().axes.resize(visible);
  if (!ok) return fail();
  frames_.push_back(std::move(frame));
  const size_t reported = sink_.all().size();
  const Typed result = elaborate(*f.body);
  frames_.pop_back();
  if (!result) {
    // Say which call led into the function: the labels inside it point at library text.
    if (sink_.all().size() > reported && frames_.size() == 1) {
      sink_.last().also(s.span, fmt::format("in this call of `{}`", s.text));
    }
    return fail();
  }
  for (const auto& [axis, var] : local) {
    if (!expr::depends_on(result.e, var)) continue;
    sink_
        .report(Code::UnboundIndex, s.span,
                fmt::format("the result of `{}` still depends on `{}`, which no axis binds", s.text,
                            axis))
        .with_help(
            fmt::format("put `{}` among the axes of the left side, or reduce over it", axis));
    return fail();
  }
  return result;
}

std::vector<Expr> ExprElaborator::axes_as_they_lie(Expr value) const {
  std::vector<Expr> rest;
  for (Expr var : expr::free_vars(value)) {
    if (scope_.is_axis(var)) rest.push_back(var);
  }
  std::vector<Expr> order;
  expr::for_each(value, [&](Expr e) {
    if (e.op() != Op::Read) return;
    std::vector<Expr> own;
    for (Expr index : e.args()) {
      if (std::find(rest.begin(), rest.end(), index) != rest.end() &&
          std::find(own.begin(), own.end(), index) == own.end())
        own.push_back(index);
    }
    if (own.size() > order.size()) order = std::move(own);
  });
  for (Expr var : rest) {
    if (std::find(order.begin(), order.end(), var) != order.end()) continue;
    const auto behind =
        std::find_if(order.begin(), order.end(), [&](Expr o) { return scope_.is_before(var, o); });
    order.insert(behind, var);
  }
  return order;
}

std::string ExprElaborator::taken_out_name(std::string_view part) const {
  std::string full = fmt::format("{}.{}", scope_.equation().str(), part);
  for (int n = 2; symbols_.find(full) || symbols_.find(ir::flat_name(full)); ++n)
    full = fmt::format("{}.{}_{}", scope_.equation().str(), part, n);
  return full;
}

Typed ExprElaborator::share(Typed value, std::string_view name, int uses, bool is_always_guarded,
                            bool is_round) {
  if (uses < 2 || guards_ > 0 || is_always_guarded || is_leaf(value.e) || value.hold != Hold::Firm)
    return value;
  // A scalar computation stays in its place, but rounds of one would double it each time.
  if (axes_as_they_lie(value.e).empty() && !is_round) return value;
  return {take_out(value.e, value.e.op() == Op::Reduce ? expr::name(value.e.reducer()) : name)};
}

Expr ExprElaborator::take_out(Expr value, std::string_view part) {
  if (const auto it = shared_.find(value); it != shared_.end()) return it->second;
  Let let;
  const std::string full = taken_out_name(part);
  const std::vector<Expr> indices = axes_as_they_lie(value);
  for (Expr var : indices) let.axes.push_back({var.name(), scope_.extent(var)});
  let.name = pool_.name(full);
  let.dtype = value.dtype();
  let.body = value;
  symbols_.add({let.name.str(), {}}, {Symbol::Kind::Tensor, {}, {}, let.type(), {}, true, nullptr},
               sink_);
  taken_out_.push_back(let);
  const Expr read = pool_.read(let.name, let.dtype, indices);
  shared_.emplace(value, read);
  return read;
}

Occurrences occurrences(const Syntax& s, std::string_view name) {
  Occurrences out;
  if (s.kind == Form::Name && s.text == name) return {1, false};
  auto add = [&](const Syntax& part, bool is_guarded) {
    const Occurrences inner = occurrences(part, name);
    out.count += inner.count;
    if (inner.count && !is_guarded && !inner.is_always_guarded) out.is_always_guarded = false;
  };
  const bool guards = (s.kind == Form::Call && s.text == "where") ||
                      (s.kind == Form::Infix && (s.text == "and" || s.text == "or"));
  const bool is_bounded = s.kind == Form::Reduce &&
                          std::any_of(s.axes.begin(), s.axes.end(), [](const expr::SyntaxAxis& a) {
                            return a.extent && (a.relation != "<" || a.name == "..");
                          });
  for (size_t k = 0; k < s.args.size(); ++k) add(*s.args[k], is_bounded || (guards && k > 0));
  if (s.kind == Form::Repeat) {  // what a step uses is used in each round
    for (size_t k = s.axes.size() - 1; k + 1 < s.args.size(); ++k) add(*s.args[k], false);
  }
  for (const expr::SyntaxAxis& a : s.axes) {
    if (a.extent) add(*a.extent, false);
  }
  if (s.init) add(*s.init, false);
  return out;
}

}  // namespace nautilus::spec

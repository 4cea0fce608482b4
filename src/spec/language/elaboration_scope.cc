// SPDX-License-Identifier: Apache-2.0
#include "spec/language/elaboration_scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "expr/build.h"
#include "expr/walk.h"

namespace nautilus::spec {

using diag::Code;
using expr::Op;
using expr::Syntax;
using ir::Expr;
using Form = Syntax::Kind;

std::vector<NameScope::Axis> NameScope::unbind_axes(size_t count) {
  auto& axes = frames_.back().axes;
  const std::vector<Axis> others(axes.begin() + static_cast<long>(count), axes.end());
  axes.resize(count);
  return others;
}

Expr NameScope::find_axis(std::string_view name) const {
  const auto& axes = frames_.back().axes;
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    if (it->first == name) return it->second;
  }
  return {};
}

std::vector<Expr> NameScope::find_axes(std::string_view name) const {
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

bool NameScope::is_function_axis(std::string_view name) const {
  const FunctionSyntax* f = frames_.back().function;
  return f && std::any_of(f->axes.begin(), f->axes.end(),
                          [&](const NameSyntax& a) { return a.text == name; });
}

bool NameScope::can_bind(std::string_view name, diag::Span span, diag::Sink& sink) const {
  if (!values().contains(name) && !find_axis(name)) return true;
  sink.report(Code::Duplicate, span,
              fmt::format("`{}` is the name of a parameter, let or axis already", name));
  return false;
}

const Symbol* NameScope::find_function(std::string_view name) const {
  const FunctionSyntax* caller = frames_.back().function;
  const Symbol* own = caller && caller->is_library ? nullptr : symbols_.find(name);
  return own ? own : library_.find(name);
}

std::vector<std::string> NameScope::visible_names() const {
  std::vector<std::string> names = symbols_.names();
  for (std::string& name : library_.names()) names.push_back(std::move(name));
  for (std::string& name : expr::dtype_names()) names.push_back(std::move(name));
  for (std::string_view name : expr::function_names()) names.emplace_back(name);
  for (const auto& [name, var] : frames_.back().axes) names.emplace_back(name);
  for (const auto& [name, value] : values()) names.emplace_back(name);
  return names;
}

void NameScope::report_undefined(const Syntax& s, bool is_equation, diag::Sink& sink) const {
  const auto near = base::nearest_name(s.text, visible_names());
  // A lone unknown name in an index position, or any short name that resembles nothing, was meant
  // as an axis.
  const bool is_index = s.kind == Form::Name && is_equation;
  auto& d = is_index ? sink.report(Code::UnboundIndex, s.name_span,
                                   fmt::format("index `{}` is not bound by any axis", s.text))
                     : sink.report(Code::UndefinedName, s.name_span,
                                   fmt::format("`{}` is not defined", s.text));
  if (is_index) {
    std::string axes;
    for (const auto& [axis, var] : frames_.back().axes)
      axes += fmt::format("{}`{}`", axes.empty() ? "" : ", ", axis);
    d.label(axes.empty() ? "no axis is in scope here"
                         : fmt::format("the axes in scope are {}", axes));
  }
  if (!near.empty()) {
    d.with_help(fmt::format("did you mean `{}`?", near));
  } else if (is_index) {
    d.with_help(
        "an index is an axis of the left side, or bound by a reduction around it; the body of a "
        "reduction ends "
        "before `+` and `-`, use parentheses");
  }
}

Expr ReadSpans::rename(Expr e, Expr from, Expr to, expr::ExprPool& pool) {
  const expr::Substitution map = {{from, to}};
  expr::for_each(e, [&](Expr r) {
    if (r.op() != Op::Read) return;
    if (const auto it = spans_.find(r); it != spans_.end()) {
      const diag::Span span = it->second;
      spans_.emplace(expr::substitute(pool, r, map), span);
    }
  });
  return expr::substitute(pool, e, map);
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
#include "spec/language/precedence.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace nautilus::spec {
namespace {

using diag::Code;
using expr::Syntax;
using Form = Syntax::Kind;

bool is_product(const Syntax& s) {
  return s.kind == Form::Infix && (s.text == "*" || s.text == "/" || s.text == "%");
}

// In the body, the name of the bounding axis means the copy.
std::string_view name_of(const expr::SyntaxAxis& axis) {
  return axis.name == ".." ? axis.extent->text : axis.name;
}

class PrecedenceWalk {
 public:
  explicit PrecedenceWalk(diag::Sink& sink) : sink_(sink) {}

  // `names`: parameters and lets in scope, which may stand for anything.
  void visit(const Syntax& s, const std::set<std::string_view>& names) {
    if (s.kind == Form::Infix && (s.text == "/" || s.text == "%")) divisor(s, names);
    const bool is_scaled = s.text == "prod" || s.text == "argmax" || s.text == "argmin";
    if (s.kind == Form::Reduce && is_scaled) {
      if (const Syntax* first = taken_in(s, names)) report(s, *first, nullptr);
    }
    if (s.kind == Form::Let) {
      visit(*s.args[0], names);
      std::set<std::string_view> more = names;
      more.insert(s.text);
      return visit(*s.args[1], more);
    }
    if (s.kind == Form::Repeat) {
      std::set<std::string_view> more = names;
      for (const expr::SyntaxAxis& a : s.axes) more.insert(a.name);
      const size_t values = s.axes.size() - 1;
      for (size_t k = 0; k < s.args.size(); ++k) visit(*s.args[k], k < values ? names : more);
      return;
    }
    for (const Syntax* a : s.args) visit(*a, names);
    for (const expr::SyntaxAxis& a : s.axes) {
      if (a.extent) visit(*a.extent, names);
    }
    if (s.init) visit(*s.init, names);
  }

 private:
  // `x / sum[j] ...`, also `x / -sum[j] ...`, without parentheses around the reduction.
  void divisor(const Syntax& quotient, const std::set<std::string_view>& names) {
    const Syntax* y = quotient.args[1];
    while (y->kind == Form::Prefix && !y->is_parenthesised) y = y->args[0];
    if (y->kind != Form::Reduce || y->is_parenthesised) return;
    if (const Syntax* first = taken_in(*y, names)) report(*y, *first, &quotient);
  }

  // The product in the body of a reduction whose right side, and that of all products around it, is
  // the same for all its terms; null if there is none.
  static const Syntax* taken_in(const Syntax& reduction, const std::set<std::string_view>& names) {
    const Syntax* first = nullptr;
    for (const Syntax* p = reduction.args[0];
         is_product(*p) && !p->is_parenthesised && is_constant(*p->args[1], reduction, names);
         p = p->args[0])
      first = p;
    return first;
  }

  static bool is_constant(const Syntax& s, const Syntax& reduction,
                          const std::set<std::string_view>& names) {
    auto is_axis = [&](std::string_view name) {
      return std::any_of(reduction.axes.begin(), reduction.axes.end(),
                         [&](const expr::SyntaxAxis& a) { return name_of(a) == name; });
    };
    if (s.kind == Form::Name && (is_axis(s.text) || names.contains(s.text))) return false;
    if (std::any_of(s.axes.begin(), s.axes.end(),
                    [&](const auto& a) { return is_axis(name_of(a)); }))
      return false;
    return std::all_of(s.args.begin(), s.args.end(),
                       [&](const Syntax* a) { return is_constant(*a, reduction, names); }) &&
           (!s.init || is_constant(*s.init, reduction, names));
  }

  void report(const Syntax& reduction, const Syntax& first, const Syntax* quotient) {
    const diag::SourceMap& sources = sink_.sources();
    const diag::Span end = reduction.args[0]->span;
    const diag::Span span{end.file, first.name_span.begin, end.end};
    const std::string_view factor = sources.text(span);
    const diag::Span alone{end.file, reduction.span.begin, first.args[0]->span.end};
    std::string axes;
    for (const expr::SyntaxAxis& a : reduction.axes)
      axes += fmt::format("{}`{}`", axes.empty() ? "" : ", ", name_of(a));
    auto& d =
        sink_.report(Code::TakenIn, span,
                     fmt::format("`{}` is inside the `{}` over {}", factor, reduction.text, axes));
    d.label(fmt::format("does not depend on {}", axes));
    if (quotient) d.also(quotient->name_span, "so this divides by it as well");
    d.with_help(fmt::format("write `({}) {}` to have it outside, or `({})` if this is meant",
                            sources.text(alone), factor, sources.text(reduction.span)));
  }

  diag::Sink& sink_;
};

}  // namespace

void warn_of_precedence(const MathSyntax& math, diag::Sink& sink) {
  PrecedenceWalk walk(sink);
  for (const FunctionSyntax& f : math.functions) {
    std::set<std::string_view> names;
    for (const NameSyntax& p : f.params) names.insert(p.text);
    walk.visit(*f.body, names);
  }
  for (const ScalarSyntax& s : math.scalars) {
    if (s.init) walk.visit(*s.init, {});
  }
  for (const EquationSyntax& e : math.equations) {
    walk.visit(*e.body, {});
    if (e.init) walk.visit(*e.init, {});
  }
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Messages of elaboration about names or dtypes that do not fit; belongs to elaborate_expr.h.
#include <fmt/format.h>

#include "base/nearest.h"
#include "expr/build.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Syntax;
using Form = Syntax::Kind;

std::vector<std::string> ExprElaborator::visible_names() const {
  std::vector<std::string> names = symbols_.names();
  for (std::string& name : library_.names()) names.push_back(std::move(name));
  for (std::string& name : expr::dtype_names()) names.push_back(std::move(name));
  for (std::string_view name : expr::function_names()) names.emplace_back(name);
  for (const auto& [name, var] : frames_.back().axes) names.emplace_back(name);
  for (const auto& [name, value] : frames_.back().values) names.emplace_back(name);
  return names;
}

Typed ExprElaborator::undefined(const Syntax& s) {
  const auto near = base::nearest_name(s.text, visible_names());
  // A lone unknown name in an index position, or any short name that resembles nothing, was meant
  // as an axis.
  const bool is_index = s.kind == Form::Name && scope_.is_equation();
  auto& d = is_index ? sink_.report(Code::UnboundIndex, s.name_span,
                                    fmt::format("index `{}` is not bound by any axis", s.text))
                     : sink_.report(Code::UndefinedName, s.name_span,
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
  return fail();
}

Typed ExprElaborator::mismatch(const Syntax& s, Typed x, Typed y) {
  auto& d = sink_.report(
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
  return fail();
}

Typed ExprElaborator::wrong_dtype(const Syntax& s, DType dtype) {
  auto& d = sink_.report(Code::WrongDType, s.name_span,
                         fmt::format("`{}` does not take {}", s.text, expr::name(dtype)));
  if (!s.args.empty()) d.also(s.args[0]->span, std::string(expr::name(dtype)));
  if (is_int(dtype)) d.with_help("write a cast, `f32(...)`");
  return fail();
}

}  // namespace nautilus::spec

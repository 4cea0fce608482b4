// SPDX-License-Identifier: Apache-2.0
// Reductions: their axes, what a reducer asks of its body, initial elements; a part of
// elaborate_expr.h.
#include <fmt/format.h>

#include "expr/build.h"
#include "expr/walk.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Syntax;
using ir::Expr;

Typed ExprElaborator::reduce(const Syntax& s) {
  std::vector<Expr> axes;
  Typed init;
  if (s.init && !(init = elaborate(*s.init))) return fail();
  const size_t visible = frames_.back().axes.size();
  std::vector<Expr> renamed;  // function axes, in step with `axes`; null for new ones
  std::vector<const expr::SyntaxAxis*> written;
  for (const expr::SyntaxAxis& a : s.axes) {
    Expr extent;
    if (a.extent && !(extent = elaborate_size(*a.extent))) return fail();
    const Expr outer = find_axis(a.name);
    if (is_function_axis(a.name) && outer && !extent) {
      for (Expr axis : find_axes(a.name)) {
        axes.push_back(axis);
        renamed.push_back(scope_.fresh(axis));
        written.push_back(&a);
      }
      continue;
    }
    if (outer || symbols_.find(a.name)) {
      const Symbol* symbol = symbols_.find(a.name);
      auto& d =
          sink_.report(Code::AxisConflict, a.span, fmt::format("`{}` is taken already", a.name));
      d.label(outer ? "an axis of this name is in scope"
                    : fmt::format("the name of {}", describe(symbol->kind)));
      d.with_help("give the reduction an axis name of its own");
      return fail();
    }
    const Expr var = scope_.add_root(a.name, a.span, extent);
    axes.push_back(var);
    renamed.push_back({});
    written.push_back(&a);
    bind_axis(a.name, var);
  }
  Typed body = elaborate(*s.args[0]);
  frames_.back().axes.resize(visible);
  if (!body) return fail();
  for (size_t k = 0; k < axes.size(); ++k) {
    if (!expr::depends_on(body.e, axes[k]) && !scope_.has_written_extent(axes[k])) {
      sink_
          .report(Code::AbsentAxis, written[k]->span,
                  fmt::format("the reduction is over `{}`, which its body does not contain",
                              written[k]->name))
          .also(s.args[0]->span, "the body")
          .with_help(
              "the body of a reduction ends before `+` and `-`, use parentheses; to count, write "
              "the extent");
      return fail();
    }
    if (renamed[k]) {
      body.e = rename(body.e, axes[k], renamed[k]);
      axes[k] = renamed[k];
    }
  }
  body = reduce_body(s, axes, body);
  if (!body) return fail();
  std::vector<Expr> extents;
  for (Expr a : axes) extents.push_back(scope_.extent(a));
  const auto reducer = expr::parse_reducer(s.text == "mean" ? "sum" : s.text);
  if (init) {
    Typed zero = body;
    if (is_arg(*reducer) || s.text == "mean") {
      sink_.report(Code::WrongArguments, s.init->span,
                   fmt::format("`{}` takes no initial element", s.text));
      return fail();
    }
    if (!promote(pool_, init, zero) || init.e.dtype() != body.e.dtype())
      return mismatch(s, init, body);
  }
  const Expr result = pool_.reduce(*reducer, body.e, axes, extents, init.e);
  if (s.text != "mean") return {result};
  Expr count;
  for (Expr x : extents) count = count ? pool_.binary(Op::Mul, count, x) : x;
  return {pool_.binary(Op::Div, result, pool_.cast(body.e.dtype(), count))};
}

// Checks what the reducer asks of its body and brings it to the accumulation dtype.
Typed ExprElaborator::reduce_body(const Syntax& s, std::vector<Expr>& axes, Typed body) {
  if (is_arg(expr::parse_reducer(s.text).value_or(expr::Reducer::Sum)) && axes.size() != 1) {
    sink_.report(Code::WrongArguments, s.span, fmt::format("`{}` takes one axis", s.text));
    return fail();
  }
  const bool is_logic = s.text == "any" || s.text == "all";
  if (is_logic != (body.e.dtype() == DType::Bool)) {
    wrong_dtype(s, body.e.dtype());
    sink_.last().help.clear();
    sink_.last().with_help(
        is_logic
            ? "the body of a reduction ends before a comparison: write the condition in parentheses"
            : "turn the condition into a number with `where(condition, 1, 0)`");
    return fail();
  }
  if (s.text == "mean") {
    const Typed f = as_float(pool_, body);
    if (!f) return wrong_dtype(s, body.e.dtype());
    body = f;
  }
  if (s.acc) {
    const bool fits = *s.acc == expr::compute_dtype(*s.acc) && can_store(*s.acc, body.e.dtype());
    if (!fits || is_arg(expr::parse_reducer(s.text).value_or(expr::Reducer::Sum))) {
      sink_
          .report(Code::WrongDType, s.name_span,
                  fmt::format("`{}` cannot accumulate {} in {}", s.text, expr::name(body.e.dtype()),
                              expr::name(*s.acc)))
          .with_help("accumulation dtypes are f32 and f64 for floats, i32 and i64 for integers");
      return fail();
    }
    body.e = pool_.cast(*s.acc, body.e);
  }
  return {body.e};
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Reductions: what a reducer asks of its body, and initial elements; a part of elaborate_expr.h.
// The axes of reductions are read in elaborate_range.cc.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "expr/build.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Reducer;
using expr::Syntax;
using ir::Expr;

Typed ExprElaborator::reduce(const Syntax& s) {
  Typed init;
  if (s.init && !(init = elaborate(*s.init))) return fail();
  Expr rank;
  if (s.args.size() > 1 && !(rank = this->rank(s))) return fail();
  const size_t visible = frames_.back().axes.size();
  std::vector<Range> all;
  Typed body;
  if (ranges(s, all)) {
    const bool is_bounded =
        std::any_of(all.begin(), all.end(), [](const Range& r) { return bool(r.bound); });
    guards_ += is_bounded;
    body = elaborate(*s.args[0]);
    guards_ -= is_bounded;
  }
  frames_.back().axes.resize(visible);
  if (!body) return fail();
  for (Range& r : all) {
    if (!expr::depends_on(body.e, r.axis) && !scope_.has_written_extent(r.axis)) {
      sink_
          .report(Code::AbsentAxis, r.written->span,
                  fmt::format("the reduction is over `{}`, which its body does not contain",
                              r.written->name == ".." ? r.written->extent->text : r.written->name))
          .also(s.args[0]->span, "the body")
          .with_help(
              "the body of a reduction ends before `+` and `-`, use parentheses; to count, write "
              "the extent");
      return fail();
    }
    if (!r.renamed) continue;
    body.e = rename(body.e, r.axis, r.renamed);
    r.axis = r.renamed;
  }
  body = reduce_body(s, all.size(), body);
  if (!body) return fail();
  if (rank) return ranked(s, all, body, rank);
  if (init) {
    Typed zero = body;
    if (is_arg(*expr::parse_reducer(s.text == "mean" ? "sum" : s.text)) || s.text == "mean") {
      sink_.report(Code::WrongArguments, s.init->span,
                   fmt::format("`{}` takes no initial element", s.text));
      return fail();
    }
    if (!promote(pool_, init, zero) || init.e.dtype() != body.e.dtype())
      return mismatch(s, init, body);
  }
  const Expr result = reduced(s, all, body, init.e);
  return result ? Typed{result} : fail();
}

Expr ExprElaborator::reduced(const Syntax& s, const std::vector<Range>& ranges, Typed body,
                             Expr init) {
  const auto reducer = *expr::parse_reducer(s.text == "mean" ? "sum" : s.text);
  std::vector<Expr> axes;
  std::vector<Expr> extents;
  for (const Range& r : ranges) {
    axes.push_back(r.axis);
    extents.push_back(scope_.extent(r.axis));
  }
  const Expr result =
      pool_.reduce(reducer, terms_.bounded(reducer, ranges, body.e), axes, extents, init);
  if (is_arg(reducer) && ranges[0].bound) return terms_.position(ranges[0], result);
  if (s.text != "mean") return result;
  Expr number;
  for (const Range& r : ranges) {
    for (Expr axis : axes) {
      if (!r.bound || !expr::depends_on(r.bound, axis)) continue;
      sink_
          .report(Code::BadStatement, r.written->span,
                  "the terms of a `mean` are not counted if one of its axes bounds another")
          .with_help("write a `sum`, and divide by the number of its terms");
      return {};
    }
    const Expr n = terms_.count(r);
    number = number ? pool_.binary(Op::Mul, number, n) : n;
  }
  return pool_.binary(Op::Div, result, pool_.cast(body.e.dtype(), number));
}

// Checks the body's dtype for the reducer and casts it to the accumulation dtype.
Typed ExprElaborator::reduce_body(const Syntax& s, size_t axes, Typed body) {
  if (is_arg(expr::parse_reducer(s.text).value_or(Reducer::Sum)) && axes != 1) {
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
    if (!fits || is_arg(expr::parse_reducer(s.text).value_or(Reducer::Sum))) {
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

// SPDX-License-Identifier: Apache-2.0
// Reductions: what a reducer asks of its body, and initial elements; a part of elaborate_reduce.h.
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

Typed ReductionElaborator::reduce(const Syntax& s) {
  Typed init;
  if (s.init && !(init = parts_.elaborate(*s.init))) return {};
  Expr rank;
  if (s.args.size() > 1 && !(rank = this->rank(s))) return {};
  const size_t visible = scope_.names.axis_count();
  std::vector<Range> all;
  Typed body;
  if (ranges(s, all)) {
    const bool is_bounded =
        std::any_of(all.begin(), all.end(), [](const Range& r) { return bool(r.bound); });
    scope_.guards += is_bounded;
    body = parts_.elaborate(*s.args[0]);
    scope_.guards -= is_bounded;
  }
  scope_.names.unbind_axes(visible);
  if (!body) return {};
  for (Range& r : all) {
    if (!expr::depends_on(body.e, r.axis) && !scope_.axes.has_written_extent(r.axis)) {
      scope_.sink
          .report(Code::AbsentAxis, r.written->span,
                  fmt::format("the reduction is over `{}`, which its body does not contain",
                              r.written->name == ".." ? r.written->extent->text : r.written->name))
          .also(s.args[0]->span, "the body")
          .with_help(
              "the body of a reduction ends before `+` and `-`, use parentheses; to count, write "
              "the extent");
      return {};
    }
    if (!r.renamed) continue;
    body.e = scope_.reads.rename(body.e, r.axis, r.renamed, scope_.pool);
    r.axis = r.renamed;
  }
  body = reduce_body(s, all.size(), body);
  if (!body) return {};
  if (rank) return ranked(s, all, body, rank);
  if (init) {
    Typed zero = body;
    if (is_arg(*expr::parse_reducer(s.text == "mean" ? "sum" : s.text)) || s.text == "mean") {
      scope_.sink.report(Code::WrongArguments, s.init->span,
                         fmt::format("`{}` takes no initial element", s.text));
      return {};
    }
    if (!promote(scope_.pool, init, zero) || init.e.dtype() != body.e.dtype())
      return operators_.mismatch(s, init, body);
  }
  const Expr result = reduced(s, all, body, init.e);
  return result ? Typed{result} : Typed();
}

Expr ReductionElaborator::reduced(const Syntax& s, const std::vector<Range>& ranges, Typed body,
                                  Expr init) {
  const auto reducer = *expr::parse_reducer(s.text == "mean" ? "sum" : s.text);
  std::vector<Expr> axes;
  std::vector<Expr> extents;
  for (const Range& r : ranges) {
    axes.push_back(r.axis);
    extents.push_back(scope_.axes.extent(r.axis));
  }
  const Expr result =
      scope_.pool.reduce(reducer, terms_.bounded(reducer, ranges, body.e), axes, extents, init);
  if (is_arg(reducer) && ranges[0].bound) return terms_.position(ranges[0], result);
  if (s.text != "mean") return result;
  Expr number;
  for (const Range& r : ranges) {
    for (Expr axis : axes) {
      if (!r.bound || !expr::depends_on(r.bound, axis)) continue;
      scope_.sink
          .report(Code::BadStatement, r.written->span,
                  "the terms of a `mean` are not counted if one of its axes bounds another")
          .with_help("write a `sum`, and divide by the number of its terms");
      return {};
    }
    const Expr n = terms_.count(r);
    number = number ? scope_.pool.binary(Op::Mul, number, n) : n;
  }
  return scope_.pool.binary(Op::Div, result, scope_.pool.cast(body.e.dtype(), number));
}

// Checks the body's dtype for the reducer and casts it to the accumulation dtype.
Typed ReductionElaborator::reduce_body(const Syntax& s, size_t axes, Typed body) {
  if (is_arg(expr::parse_reducer(s.text).value_or(Reducer::Sum)) && axes != 1) {
    scope_.sink.report(Code::WrongArguments, s.span, fmt::format("`{}` takes one axis", s.text));
    return {};
  }
  const bool is_logic = s.text == "any" || s.text == "all";
  if (is_logic != (body.e.dtype() == DType::Bool)) {
    operators_.wrong_dtype(s, body.e.dtype());
    scope_.sink.last().help.clear();
    scope_.sink.last().with_help(
        is_logic
            ? "the body of a reduction ends before a comparison: write the condition in parentheses"
            : "turn the condition into a number with `where(condition, 1, 0)`");
    return {};
  }
  if (s.text == "mean") {
    const Typed f = as_float(scope_.pool, body);
    if (!f) return operators_.wrong_dtype(s, body.e.dtype());
    body = f;
  }
  if (s.acc) {
    const bool fits = *s.acc == expr::compute_dtype(*s.acc) && can_store(*s.acc, body.e.dtype());
    if (!fits || is_arg(expr::parse_reducer(s.text).value_or(Reducer::Sum))) {
      scope_.sink
          .report(Code::WrongDType, s.name_span,
                  fmt::format("`{}` cannot accumulate {} in {}", s.text, expr::name(body.e.dtype()),
                              expr::name(*s.acc)))
          .with_help("accumulation dtypes are f32 and f64 for floats, i32 and i64 for integers");
      return {};
    }
    body.e = scope_.pool.cast(*s.acc, body.e);
  }
  return {body.e};
}

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Elements by their rank: `max[j rank r] x` is the element that r others come before; a part of
// elaborate_reduce.h.
//
//   place[j]        =  sum[k] (x[k] > x[j] or x[k] == x[j] and k < j)
//   max[j rank r] x =  max[j] where(place[j] == r, x, -inf)
//
// Places are an equation of their own, so that all ranks share them; no two elements have the same.
// NaN comes before nothing, and is never chosen. Nothing behind this file knows of ranks.
#include <fmt/format.h>

#include "expr/build.h"
#include "expr/scalar_ops.h"
#include "spec/language/elaborate_expr.h"

namespace nautilus::spec {

using diag::Code;
using expr::DType;
using expr::Op;
using expr::Reducer;
using expr::Syntax;
using ir::Expr;

namespace {

// Whether the reduction may have a rank; reported if it may not.
bool takes_rank(const Syntax& s, diag::Sink& sink) {
  if (s.text != "max" && s.text != "min" && s.text != "argmax" && s.text != "argmin") {
    sink.report(Code::WrongArguments, s.args[1]->span, fmt::format("`{}` takes no rank", s.text))
        .with_help(
            "`max`, `min`, `argmax` and `argmin` do: `max[j rank 1] x` is the second largest");
    return false;
  }
  if (!s.init && !s.acc) return true;
  sink.report(
      Code::WrongArguments, s.init ? s.init->span : s.span,
      fmt::format("a `{}` with a rank takes no {}", s.text, s.init ? "initial element" : "`acc`"));
  return false;
}

}  // namespace

// The same for all elements: outside of the reduction its axis has another meaning or none.
Expr ReductionElaborator::rank(const Syntax& s) {
  const Syntax& written = *s.args[1];
  if (!takes_rank(s, scope_.sink)) return {};
  for (const expr::SyntaxAxis& a : s.axes) {
    if (scope_.names.find_axis(a.name) || occurrences(written, a.name).count == 0) continue;
    scope_.sink
        .report(Code::WrongArguments, written.span,
                fmt::format("the rank depends on `{}`, which the reduction is over", a.name))
        .with_help("a rank is the same for all elements that are compared");
    return {};
  }
  return parts_.elaborate_index(written, "a rank");
}

Typed ReductionElaborator::ranked(const Syntax& s, const std::vector<Range>& ranges, Typed body,
                                  Expr rank) {
  if (ranges.size() != 1) {
    scope_.sink.report(Code::WrongArguments, s.span,
                       fmt::format("`{}` with a rank takes one axis", s.text));
    return {};
  }
  const Range& range = ranges[0];
  const Reducer reducer = *expr::parse_reducer(s.text);
  // Every element is compared with all others, so what is computed is stored once; but not where
  // reads are inside their tensors only under the bound.
  const Expr value = range.bound ? body.e : taken_out_.share(body, "term", {2, false}).e;
  const Expr k = scope_.axes.fresh(range.axis);
  const bool is_largest = reducer == Reducer::Max || reducer == Reducer::ArgMax;
  const Expr count = terms_.place(
      range, value, k, scope_.reads.rename(value, range.axis, k, scope_.pool), is_largest);
  const Expr own = scope_.guards > 0 ? count : taken_out_.take_out(count, "place");
  Expr is_chosen = scope_.pool.binary(Op::Eq, scope_.pool.cast(DType::I64, own), rank);
  if (is_float(value.dtype()))
    is_chosen = scope_.pool.binary(Op::And, is_chosen, scope_.pool.binary(Op::Eq, value, value));
  if (range.bound)
    is_chosen = scope_.pool.binary(Op::And, terms_.holds(range, range.axis), is_chosen);
  const Expr axes[] = {range.axis};
  const Expr extents[] = {scope_.axes.extent(range.axis)};
  if (is_arg(reducer)) {
    const Expr none = scope_.pool.integer(-1);
    const Expr chosen = scope_.pool.select(is_chosen, range.axis, none);
    return {scope_.pool.reduce(Reducer::Max, chosen, axes, extents, none)};
  }
  const expr::Value v = expr::identity(reducer, value.dtype());
  const Expr none = is_float(value.dtype()) ? scope_.pool.floating(v.f, value.dtype())
                                            : scope_.pool.integer(v.i, value.dtype());
  return {scope_.pool.reduce(reducer, scope_.pool.select(is_chosen, value, none), axes, extents)};
}

}  // namespace nautilus::spec

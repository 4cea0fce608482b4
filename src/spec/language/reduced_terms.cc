// SPDX-License-Identifier: Apache-2.0
#include "spec/language/reduced_terms.h"

#include <limits>

#include "expr/build.h"
#include "expr/scalar_ops.h"

namespace nautilus::spec {

using expr::DType;
using expr::Op;
using expr::Reducer;
using ir::Expr;

Expr ReducedTerms::holds(const Range& range, Expr axis) const {
  return pool_.binary(range.relation, axis, range.bound);
}

Expr ReducedTerms::bounded(Reducer reducer, std::span<const Range> ranges, Expr body) const {
  Expr condition;
  for (const Range& r : ranges) {
    if (!r.bound) continue;
    const Expr own = holds(r, r.axis);
    condition = condition ? pool_.binary(Op::And, condition, own) : own;
  }
  if (!condition) return body;
  const DType dtype = body.dtype();
  if (is_arg(reducer) && is_float(dtype)) {
    // NaN has no position, so it stands for terms that do not count. It is computed, because texts
    // have no word for it.
    const Expr infinite = pool_.floating(std::numeric_limits<double>::infinity(), dtype);
    return pool_.select(condition, body, pool_.binary(Op::Sub, infinite, infinite));
  }
  const expr::Value v = expr::identity(reducer, dtype);
  const Expr none = is_float(dtype)        ? pool_.floating(v.f, dtype)
                    : dtype == DType::Bool ? pool_.boolean(v.i != 0)
                                           : pool_.integer(v.i, dtype);
  return pool_.select(condition, body, none);
}

// Integers have no number that never counts: where the least one was found at a term that the bound
// leaves out, those that it leaves in are as small, and the first of them is the position.
Expr ReducedTerms::position(const Range& range, Expr result) const {
  if (is_float(result.body().dtype())) return result;
  const bool is_prefix = range.relation == Op::Lt || range.relation == Op::Le;
  const Expr none = pool_.integer(-1);
  if (is_prefix)
    return pool_.select(pool_.binary(range.relation, result, range.bound), result, none);
  const Expr first =
      range.relation == Op::Ge ? range.bound : pool_.binary(Op::Add, range.bound, pool_.integer(1));
  const Expr has_terms = pool_.binary(Op::Lt, first, scope_.extent(range.axis));
  return pool_.select(has_terms, pool_.binary(Op::Max, result, first), none);
}

Expr ReducedTerms::count(const Range& range) const {
  const Expr extent = scope_.extent(range.axis);
  if (!range.bound) return extent;
  const bool is_prefix = range.relation == Op::Lt || range.relation == Op::Le;
  const bool is_next = range.relation == Op::Le || range.relation == Op::Gt;
  const Expr end = is_next ? pool_.binary(Op::Add, range.bound, pool_.integer(1)) : range.bound;
  const Expr before = pool_.binary(Op::Max, pool_.binary(Op::Min, end, extent), pool_.integer(0));
  return is_prefix ? before : pool_.binary(Op::Sub, extent, before);
}

Expr ReducedTerms::place(const Range& range, Expr value, Expr k, Expr other,
                         bool is_largest) const {
  const Expr axis = range.axis;
  const Expr is_beyond = pool_.binary(is_largest ? Op::Gt : Op::Lt, other, value);
  const Expr is_equal_and_before =
      pool_.binary(Op::And, pool_.binary(Op::Eq, other, value), pool_.binary(Op::Lt, k, axis));
  Expr is_before = pool_.binary(Op::Or, is_beyond, is_equal_and_before);
  if (range.bound) {
    const Expr both = pool_.binary(Op::And, holds(range, k), holds(range, axis));
    is_before = pool_.binary(Op::And, both, is_before);
  }
  const Expr one = pool_.integer(1, DType::I32);
  const Expr none = pool_.integer(0, DType::I32);
  const Expr axes[] = {k};
  const Expr extents[] = {scope_.extent(axis)};
  return pool_.reduce(Reducer::Sum, pool_.select(is_before, one, none), axes, extents);
}

}  // namespace nautilus::spec

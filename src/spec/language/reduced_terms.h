// SPDX-License-Identifier: Apache-2.0
// The terms of a reduction: which of them count, how many, and in what order; a part of
// elaborate_reduce.h.
//
// A bound is a condition around the body: terms that do not count are replaced by the reducer's
// empty value. So `sum[s <= t] X[i, s]` is `sum[s < T] where(s <= t, X[i, s], 0)` from here on.
#pragma once

#include <span>

#include "spec/language/equation_scope.h"

namespace nautilus::expr {
struct SyntaxAxis;
}

namespace nautilus::spec {

// An axis of a reduction: its extent, and the condition on its terms.
struct Range {
  ir::Expr axis;
  ir::Expr renamed = {};  // its variable in the reduction, if that is another one
  const expr::SyntaxAxis* written = nullptr;
  expr::Op relation = expr::Op::Lt;
  ir::Expr bound = {};  // null: all terms count
};

class ReducedTerms {
 public:
  ReducedTerms(const EquationScope& scope, expr::ExprPool& pool) : scope_(scope), pool_(pool) {}

  // The bound of the range for this variable of its axis.
  ir::Expr holds(const Range& range, ir::Expr axis) const;
  // The body where all bounds hold, and what changes nothing elsewhere.
  ir::Expr bounded(expr::Reducer reducer, std::span<const Range> ranges, ir::Expr body) const;
  // The position that an argmax or argmin of the bounded body has.
  ir::Expr position(const Range& range, ir::Expr result) const;
  // How many terms the axis has.
  ir::Expr count(const Range& range) const;
  // How many elements come before that of the axis; `other`: the element at k.
  ir::Expr place(const Range& range, ir::Expr value, ir::Expr k, ir::Expr other,
                 bool is_largest) const;

 private:
  const EquationScope& scope_;
  expr::ExprPool& pool_;
};

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Simplification: constants folded, operands in canonical order, rules (rules.def) applied to a
// fixed point.
//
// Exact: the result has the same value for every assignment (integers: absent overflow of i64), bit
// for bit for floats.
#pragma once

#include "expr/bounds/bounds.h"
#include "expr/rules/rules.h"

namespace nautilus::expr {

class Simplifier {
 public:
  explicit Simplifier(ExprPool& pool, const std::vector<std::string>& disabled_rules = {})
      : pool_(pool), rules_(pool, disabled_rules) {}

  Expr simplify(Expr e) { return simplify(e, nullptr); }
  // Also uses what is known about variables: `i < N` is true for an axis of extent N, `i % 8` is
  // `i` below 8.
  Expr simplify(Expr e, const Facts* facts);

  const RuleSet& rules() const { return rules_; }

 private:
  Expr root(Expr e, const Facts* facts);

  ExprPool& pool_;
  RuleSet rules_;
};

}  // namespace nautilus::expr

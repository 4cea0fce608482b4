// SPDX-License-Identifier: Apache-2.0
// What is known about the sign of float expressions: constants, declared facts (`scale > 0`), and
// how operators change signs. Sound and incomplete.
#pragma once

#include <unordered_set>

#include "ir/op.h"

namespace nautilus::algebra {

class Signs {
 public:
  Signs() = default;
  // Takes the facts of a program of any level.
  explicit Signs(const ir::Program& program);

  // True if every value is > 0 and no operator in it can overflow to NaN. An infinite scalar
  // violates the contract, like an infinite input.
  bool is_positive(expr::Expr e) const;
  bool is_nonnegative(expr::Expr e) const;
  // Whether a fact says so about exactly this expression.
  bool is_given_positive(expr::Expr e) const { return positive_.contains(e); }

 private:
  std::unordered_set<expr::Expr> positive_;
  std::unordered_set<expr::Expr> nonnegative_;
};

// True for expressions of constants, sizes and scalars: no axis, no tensor element.
bool is_scalar(expr::Expr e, const std::unordered_set<expr::Expr>& axes);

}  // namespace nautilus::algebra

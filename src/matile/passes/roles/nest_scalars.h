// SPDX-License-Identifier: Apache-2.0
// What is known about the scalars of a nest when its roles are split: bounds, equality, and how
// they change from warp group to warp group.
#pragma once

#include <optional>
#include <unordered_map>

#include "expr/bounds/bounds.h"
#include "expr/walk.h"
#include "ir/pass.h"
#include "matile/ops.h"

namespace nautilus::matile {

// Scalars of a nest written out: every `let` replaced by its value. Sizes that are extents of maps
// of the kernel are at least 1: an empty tensor has no map, and a launch that needs one is refused.
class Scalars {
 public:
  Scalars(const ir::Program& program, const Kernel& kernel, const Role& role, expr::ExprPool& pool);

  // All lets replaced.
  expr::Expr inlined(expr::Expr e) const { return expr::substitute(pool_, e, all_); }
  // Only lets that depend on the group's index replaced.
  expr::Expr without_group_lets(expr::Expr e) const { return expr::substitute(pool_, e, group_); }
  bool depends_on_group(expr::Expr e) const;
  bool depends_on(expr::Expr e, ir::Name var) const;

  bool is_nonnegative(expr::Expr e) const;
  bool is_at_least(expr::Expr a, expr::Expr b) const;
  bool is_equal(expr::Expr a, expr::Expr b) const;

  // The least or greatest value over all groups, in terms of scalars that all groups share. Null if
  // the expression is not monotone in the index and does not read elements by it.
  expr::Expr extreme_over_groups(expr::Expr e, bool is_greatest) const;

 private:
  bool prove_nonnegative(expr::Expr e) const;
  std::optional<int> direction_in_group(expr::Expr e) const;
  // Least (or greatest) value as a number, from the least values of sizes; empty if there is none.
  std::optional<int64_t> limit(expr::Expr e, bool is_upper) const;
  std::optional<int64_t> limit(const expr::Poly& p, bool is_upper) const;

  expr::ExprPool& pool_;
  expr::Facts facts_;
  std::unordered_map<expr::Expr, int64_t> least_;  // of sizes and indices
  expr::Expr group_index_;
  int64_t groups_ = 1;
  expr::Substitution all_;
  expr::Substitution group_;
  // Remembered because rings of one nest ask the same questions about the same loops.
  mutable std::unordered_map<expr::Expr, bool> proven_;
};

}  // namespace nautilus::matile

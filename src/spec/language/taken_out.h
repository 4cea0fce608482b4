// SPDX-License-Identifier: Apache-2.0
// Equations taken out of one that is elaborated.
//
// A let or an argument that is used more than once and is not a single element becomes an equation
// of its own, so that shared expressions stay shared and texts cannot grow exponentially. It stays
// inline under a guard: taken out of `where(i > 0, f(X[i - 1] * 2), 0)` it would read outside of X.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "spec/language/elaboration_scope.h"
#include "spec/ops.h"

namespace nautilus::spec {

// How often a name occurs in an expression, and whether every occurrence is in a branch of `where`,
// to the right of `and` or `or`, or in a reduction with a bound.
struct Occurrences {
  int count = 0;
  bool is_always_guarded = true;
};
Occurrences occurrences(const expr::Syntax& s, std::string_view name);

class TakenOut {
 public:
  explicit TakenOut(ElaborationScope& scope) : scope_(scope) {}

  // In the order they are needed. Extents may be placeholders still.
  const std::vector<Let>& lets() const { return lets_; }

  // The value for a name with these uses: its element in an equation of its own, or itself.
  Typed share(Typed value, std::string_view name, Occurrences uses, bool is_round = false);
  // Makes the value an equation of its own; its element at the value's axes.
  ir::Expr take_out(ir::Expr value, std::string_view part);
  // A new equation; its name. `part` says what it is.
  ir::Name define(std::string_view part, ir::Axes axes, ir::Expr body);

 private:
  // A name for an equation that is taken out of this one.
  std::string name_of(std::string_view part) const;
  // The axes of a value in the order of the element read that has the most of them, so that a
  // tensor of the value has the memory order of its operand; the others in the order of the text.
  std::vector<ir::Expr> axes_as_they_lie(ir::Expr value) const;

  ElaborationScope& scope_;
  std::vector<Let> lets_;
  std::unordered_map<ir::Expr, ir::Expr> shared_;
};

}  // namespace nautilus::spec

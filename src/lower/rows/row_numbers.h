// SPDX-License-Identifier: Apache-2.0
// Work that is the same for all columns, done once for a row: `e[j] / (l[] + 1)` with the sum as a
// number.
#pragma once

#include <unordered_map>

#include "lower/rows/row_scope.h"

namespace nautilus::lower {

class RowNumbers {
 public:
  // `row` gets the ops that compute them: the block of a row, outside walks.
  RowNumbers(RowScope& scope, ir::Block& row) : scope_(scope), row_(row) {}

  // A rewritten value (row_values.h) that reads numbers where it would compute them for each
  // column.
  expr::Expr hoisted(expr::Expr e);

 private:
  expr::Expr hoist(expr::Expr e);
  bool is_number(expr::Expr e) const;

  RowScope& scope_;
  ir::Block& row_;
  std::unordered_map<expr::Expr, ir::Name> hoisted_;  // numbers that values have in common
  std::unordered_map<expr::Expr, expr::Expr> without_numbers_;
};

}  // namespace nautilus::lower

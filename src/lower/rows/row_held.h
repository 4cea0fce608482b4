// SPDX-License-Identifier: Apache-2.0
// The form of a row kernel in which a row stays in registers from its first reduction to its last
// element.
#pragma once

#include <span>
#include <vector>

#include "lower/rows/row_statements.h"

namespace nautilus::lower {

class HeldRow {
 public:
  HeldRow(RowScope& scope, RowValues& values, RowStatements& statements)
      : scope_(scope),
        group_(scope.group),
        pool_(scope.pool),
        values_(values),
        statements_(statements) {}

  void run(ir::Block& out);

 private:
  // Adds to what is late (row_values.h).
  void find_late(const std::vector<expr::Expr>& reads);
  void element(size_t index, const std::vector<expr::Expr>& reads, ir::Block& out);
  int uses_after(size_t index) const;
  // Worth holding rather than computing again: slow functions, and elements at other places of
  // memory than the row's, which no tile has.
  bool is_expensive(expr::Expr value) const;
  bool can_be_held(size_t index) const;
  // Whether statements after `index` need the read, other than through that statement's elements.
  bool is_read_after(size_t index, expr::Expr read) const;
  // A read whose tile the elements of a statement may take over: its last use is in them. Empty if
  // there is none.
  expr::Expr replaced_by(size_t index, const std::vector<expr::Expr>& reads) const;
  // Whether elements of 16 bits stay unpacked behind a reduction; else they are unpacked again.
  bool stays_unpacked(ir::Name reduction, std::span<const expr::Expr> reads);
  void rematerialize(std::span<const expr::Expr> reads, ir::Block& out) const;

  RowScope& scope_;
  const RowGroup& group_;
  expr::ExprPool& pool_;
  RowValues& values_;
  RowStatements& statements_;
};

}  // namespace nautilus::lower

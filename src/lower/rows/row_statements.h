// SPDX-License-Identifier: Apache-2.0
// One statement of a row group as ops: reductions, numbers, elements.
#pragma once

#include "lower/rows/row_numbers.h"
#include "lower/rows/row_values.h"

namespace nautilus::lower {

class RowStatements {
 public:
  // `row`: the block of a row, outside walks.
  RowStatements(RowScope& scope, RowValues& values, ir::Block& row)
      : scope_(scope),
        group_(scope.group),
        pool_(scope.pool),
        values_(values),
        numbers_(scope, row) {}

  // What a reduction starts from in a thread.
  expr::Expr identity(expr::Reducer reducer) const;
  // acc = acc with the thread's own columns.
  void fold(const RowStatement& s, ir::Name acc, bool is_first, ir::Block& out);
  // The parts of all threads, and what the reduction starts from.
  void finish(const RowStatement& s, ir::Name acc, ir::Block& out);
  void number(const RowStatement& s, ir::Block& out);
  // A number of the row that stands in a tile.
  void result(const RowStatement& s, ir::Name tile, ir::Block& out);
  // Elements that stay in registers: in the tile of a read that nothing needs any more, if there is
  // one (null: there is not).
  void hold_element(const RowStatement& s, expr::Expr replaced, ir::Block& out);
  void put_element(const RowStatement& s, ir::Block& out);
  // Piece by piece, if some of what they read is late.
  void put_pieces(const RowStatement& s, ir::Block& out);

  // Whether a reduction has a condition for each of its terms.
  bool has_conditions() const { return has_conditions_; }

 private:
  void put_number(const RowStatement& s, ir::Name tile, ir::Block& out);
  // Nothing is read beyond the row.
  expr::Expr guarded(expr::Expr value) const;

  RowScope& scope_;
  const RowGroup& group_;
  expr::ExprPool& pool_;
  RowValues& values_;
  RowNumbers numbers_;
  bool has_conditions_ = false;
};

}  // namespace nautilus::lower

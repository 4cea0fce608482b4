// SPDX-License-Identifier: Apache-2.0
// The form of a row kernel in which a row is walked over in steps, once for reductions and elements
// that need no number of each other, and for sums that move with the numbers they need
// (row_moving.h, row_scaled.h).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lower/rows/row_moving_ops.h"
#include "lower/rows/row_scaled_ops.h"

namespace nautilus::lower {

class RowWalk {
 public:
  RowWalk(RowScope& scope, RowValues& values, RowStatements& statements)
      : scope_(scope),
        group_(scope.group),
        pool_(scope.pool),
        values_(values),
        statements_(statements) {}

  void run(ir::Block& out);

 private:
  // The sums of a walk that follow other reductions.
  struct Following {
    std::optional<RowMovingOps> moving;
    std::optional<RowScaledOps> scaled;

    // In a step that has folded the plain reductions; `more`: elements that it adds, an f32.
    void move(expr::Expr more, ir::Block& out);
    // The terms of one part of the step.
    void fold(ir::Block& out);
  };

  // The statements of a walk, in `count` steps along a row of one axis.
  void walk(const RowSegment& segment, ir::Name count, ir::Block& out);
  // What a step loads and folds.
  void step(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
            Following& following, expr::Expr more, ir::Block& out);
  // Steps over the elements of several axes, counted through as if they were one: a step of a row
  // shorter than the tiles would leave threads idle. In blocks of rows whose elements 32 bits
  // count.
  void walk_through(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
                    Following& following, ir::Block& out);
  // The rows that a loop over all elements walks through.
  struct Rows {
    expr::Expr first;  // null: row 0
    expr::Expr count;
    matile::Loop blocks;  // of rows, around the loop; none if they are all of one block
    ir::Block body;       // of a block
    bool is_one = false;  // block
  };
  Rows blocks_of_rows(ir::Block& out) const;
  expr::Expr steps_through(expr::Expr elements, int64_t of_step) const;
  // What the parts of a step load and fold.
  void step_through(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
                    Following& following, const Rows& rows, matile::Loop& loop);
  // Before the walk.
  void start(const RowSegment& segment, const std::map<std::string, ir::Name>& accs,
             Following& following, ir::Block& out);
  // Sets where the n-th part of a step is.
  void go_to(size_t n, expr::Expr step, expr::Expr first_row, expr::Expr rows);
  ir::Name let(std::string_view stem, expr::Expr value, ir::Block& out) const;
  // Of the row, in the step that begins at this column of the tiles.
  expr::Expr elements_of_step(expr::Expr first) const;
  expr::Expr both(expr::Op op, expr::Expr a, expr::Expr b) const;

  RowScope& scope_;
  const RowGroup& group_;
  expr::ExprPool& pool_;
  RowValues& values_;
  RowStatements& statements_;
};

}  // namespace nautilus::lower

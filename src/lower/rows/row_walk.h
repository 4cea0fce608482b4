// SPDX-License-Identifier: Apache-2.0
// The form of a row kernel in which a row is walked over in steps, once for reductions and elements
// that need no number of each other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "lower/rows/row_statements.h"

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
  // Whether a value needs one of the numbers, through elements that are computed again too.
  bool depends(expr::Expr value, const std::set<std::string>& numbers) const;
  // The statements from `begin` to `end`, in `count` steps.
  void walk(size_t begin, size_t end, ir::Name count, ir::Block& out);
  // A step of a walk over several rows: what all of them need is loaded first. The loop over the
  // last outer axis counts steps of them.
  void walk_rows(size_t begin, size_t end, const std::vector<ir::Name>& accs, matile::Loop& loop);
  // The loops over the outer axes.
  ir::Op with_outer_loops(matile::Loop loop) const;

  RowScope& scope_;
  const RowGroup& group_;
  expr::ExprPool& pool_;
  RowValues& values_;
  RowStatements& statements_;
};

}  // namespace nautilus::lower

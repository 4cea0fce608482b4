// SPDX-License-Identifier: Apache-2.0
// The ops of a walk whose sums follow its extremes (row_scaled.h): what is added to each step of
// the walk, and behind it.
//
// Every thread has the extreme of its own elements so far and sums relative to that, so that no
// step waits for other threads. They agree on one extreme behind the walk.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "algebra/repair.h"
#include "lower/rows/row_moving.h"
#include "lower/rows/row_statements.h"

namespace nautilus::lower {

class RowScaledOps {
 public:
  // `accs`: shares of the walk's plain reductions, by target.
  RowScaledOps(RowScope& scope, RowValues& values, RowStatements& statements,
               const RowSegment& segment, const std::map<std::string, ir::Name>& accs)
      : scope_(scope),
        pool_(scope.pool),
        values_(values),
        statements_(statements),
        segment_(segment),
        accs_(accs) {}

  // Before the walk.
  void start(ir::Block& out);
  // In a step that has folded the plain reductions: the sums are scaled to the extremes so far.
  void move(ir::Block& out);
  // The terms of one part of the step.
  void fold(ir::Block& out);
  // The result, when the row's extremes are known.
  void settle(const RowScaledSum& sum, ir::Block& out);

 private:
  struct Reference {
    expr::Expr read;    // of the extreme
    expr::Expr before;  // stands for it in factors, and `after` for what it becomes
    expr::Expr after;
    ir::Name now;  // the thread's own, which its sums are relative to
    ir::Name acc;  // the same with the elements of the step
    double identity = 0;
  };
  struct Factor {
    expr::Expr value;
    ir::Name tile;
  };

  void add_reference(const RowScaledSum::Extreme& m, ir::Block& out);
  std::vector<const Reference*> references_of(const RowScaledSum& sum) const;
  // With the thread's own extremes in place of the row's.
  expr::Expr against_own(expr::Expr e) const;
  // Of a sum whose extremes become those of the step, or of the row.
  expr::Expr moving_factor(const RowScaledSum& sum) const;
  expr::Expr last_factor(const RowScaledSum& sum) const;
  // `to`: what the extremes become.
  expr::Expr factor(const algebra::RunningPart& part, const std::vector<const Reference*>& of,
                    const std::vector<expr::Expr>& to) const;
  // Null: it has some.
  expr::Expr is_row_empty() const;
  ir::Name own(std::string_view stem);
  expr::Expr number(ir::Name tile) const { return pool_.read(tile, expr::DType::F32, {}); }
  void set(ir::Name tile, expr::Expr value, ir::Block& out) const;

  RowScope& scope_;
  expr::ExprPool& pool_;
  RowValues& values_;
  RowStatements& statements_;
  const RowSegment& segment_;
  const std::map<std::string, ir::Name>& accs_;
  std::vector<Reference> references_;
  std::vector<Factor> factors_;    // that several sums may have in common
  std::vector<size_t> factor_of_;  // by sum
  std::vector<ir::Name> sums_;     // of the segment, in its order
};

}  // namespace nautilus::lower

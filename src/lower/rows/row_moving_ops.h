// SPDX-License-Identifier: Apache-2.0
// The ops of a walk whose sums move (row_moving.h): what is added to each step of the walk, and
// behind it.
//
// A reference is one number for all threads, so every step puts the sums together that it is made
// of. The sums about it stay shares of the threads; what moving adds of the number of elements is
// the same in all threads, and is kept with the shares until the end.
#pragma once

#include <map>
#include <vector>

#include "lower/rows/row_moving.h"
#include "lower/rows/row_statements.h"

namespace nautilus::lower {

class RowMovingOps {
 public:
  // `accs`: shares of the walk's plain reductions, by target.
  RowMovingOps(RowScope& scope, RowValues& values, RowStatements& statements,
               const RowSegment& segment, const std::map<std::string, ir::Name>& accs)
      : scope_(scope),
        pool_(scope.pool),
        values_(values),
        statements_(statements),
        segment_(segment),
        accs_(accs) {}

  // Before the walk. `all`: the number of the row's elements, an f32.
  void start(expr::Expr all, ir::Block& out);
  // In a step that has folded the plain reductions; `more`: elements that it adds, an f32. The
  // references move, and the sums with them.
  void move(expr::Expr more, ir::Block& out);
  // The terms of one part of the step.
  void fold(ir::Block& out);
  // The result, when the reductions and numbers that it needs are known.
  void settle(const RowMovingSum& sum, ir::Block& out);

 private:
  struct Reference {
    expr::Expr value;  // of reductions of the walk
    ir::Name now;
    ir::Name next;
    ir::Name step;
    bool is_settled = false;
  };
  // Sums with the same terms are one.
  struct Sum {
    expr::Expr term;  // about the next references
    size_t of = 0;    // the moving sum that it was met in first, and its moment there
    size_t moment = 0;
    size_t height = 0;  // how often it can be derived
    ir::Name shares;
    ir::Name whole;
  };

  size_t reference(expr::Expr value, std::string_view stem, ir::Block& out);
  void add(size_t of, size_t moment, ir::Block& out);
  ir::Name zero(std::string_view stem, ir::Block& out);
  ir::Name tile(std::string_view stem);
  expr::Expr number(ir::Name tile) const { return pool_.read(tile, expr::DType::F32, {}); }
  void set(ir::Name tile, expr::Expr value, ir::Block& out) const;
  void join(ir::Name tile, ir::Block& out) const;
  expr::Expr about_next(size_t of, expr::Expr term) const;
  const Sum* sum_of(size_t of, size_t moment) const;
  // Of a moment of the moving sum, after the steps of its references: the threads' shares, or what
  // all threads have.
  expr::Expr moved(size_t of, size_t moment, const std::vector<expr::Expr>& steps,
                   bool is_whole) const;

  RowScope& scope_;
  expr::ExprPool& pool_;
  RowValues& values_;
  RowStatements& statements_;
  const RowSegment& segment_;
  const std::map<std::string, ir::Name>& accs_;
  expr::Expr all_;
  ir::Name seen_;
  std::map<std::string, ir::Name> now_;  // plain reductions of all threads so far
  std::vector<Reference> references_;
  std::vector<std::vector<size_t>> references_of_;  // by moving sum
  std::vector<Sum> sums_;                           // the highest first
};

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// One row kernel (row_kernel.h): the kernel around its work, which CTA has which row, and the form
// of the work. A row that fits stays in registers (row_held.h), others are walked over
// (row_walk.h); without reductions a CTA has a block of elements.
#pragma once

#include "lower/rows/row_statements.h"

namespace nautilus::lower {

class RowLowering {
 public:
  RowLowering(const RowContext& context, const RowAlternative& alternative, ir::Name kernel,
              RowAnswers& answers)
      : scope_(context, alternative, answers),
        group_(scope_.group),
        pool_(scope_.pool),
        kernel_(kernel) {}

  matile::Kernel run();
  // Whether the tiles leave registers for the rest; known after run().
  bool fits() const {
    return scope_.shape.groups == 1 ||
           scope_.registers() + scope_.choice.spare_registers <= scope_.choice.alone_registers;
  }
  // Whether a reduction has a condition for each of its terms; known after run().
  bool has_conditions() const { return has_conditions_; }
  // Of tiles: rows, or blocks of their columns.
  expr::Expr count() const;

 private:
  // Without reductions a row need not stay together: a CTA has a block of its columns.
  bool is_blocked() const { return has_elements_only(group_); }
  // The row's indices, and the block of its columns, from the number of the tile; they return the
  // tile's name.
  ir::Name decode_block(ir::Block& body);
  ir::Name decode_row(ir::Block& body);
  ir::Name decode_lanes(ir::Block& body);
  void decode(expr::Expr rest, ir::Block& body);
  // The work of a row.
  void work(ir::Block& out);
  // A block of elements.
  void block(RowValues& values, RowStatements& statements, ir::Block& out);
  // The kernel with its tiles and its role.
  matile::Kernel assemble(ir::Name tile, ir::Block body);

  RowScope scope_;
  const RowGroup& group_;
  expr::ExprPool& pool_;
  ir::Name kernel_;
  bool has_conditions_ = false;
};

}  // namespace nautilus::lower

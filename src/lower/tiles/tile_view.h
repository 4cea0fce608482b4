// SPDX-License-Identifier: Apache-2.0
// Where a tile of two axes lies in a tensor, and the view of the tensor that the copy engine needs
// to move it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "expr/bounds/divisors.h"
#include "lower/kernel/lowered_kernel.h"
#include "matile/ops.h"
#include "target/target.h"

namespace nautilus::lower {

// Elements of a tensor at points of two axes, guarded by a condition.
struct TileElements {
  const target::Copies* copies = nullptr;  // of the target
  ir::Name tensor;
  ir::TensorType type;
  std::vector<expr::Expr> indices;
  ir::Axes axes;
  expr::Expr condition;                      // null: all points are inside
  const expr::Divisors* divisors = nullptr;  // of sizes
};

struct TileView {
  size_t row_dim = 0;            // the tensor's dimension that the rows of the view run along
  expr::Expr row_base;           // index of the first row
  int row_step = 1;              // from one row to the next
  expr::Expr col_base;           // and of the first column, in the last dimension
  std::vector<expr::Expr> rest;  // indices of all dimensions; those of rows and columns are null
  // Rows within a block of the dimension, `row_base + row < n` and index n * block + row_base +
  // row: the dimension is seen as blocks of n rows. Null: the dimension as it is.
  expr::Expr block_rows;
  expr::Expr block;
  // Where rows and columns end before their dimensions do, `col_base + col < N - 2`. Null: there.
  expr::Expr row_end;
  expr::Expr col_end;
  int rows = 0;
  int cols = 0;
  bool is_transposed = false;  // the tile's first axis runs along the tensor's last dimension
};

// Why the indices are none of a box, whatever the tensor's sizes are and wherever the box begins;
// empty if they are. `view_of` asks this first.
std::string refuse_indices(const TileElements& elements, expr::ExprPool& pool);

// The same of all elements in one box, which may reach over too many rows.
std::string refuse_box(const TileElements& elements, expr::ExprPool& pool);

// Nothing (and why) if the tile is no box of the tensor, or if its condition is more than "inside
// of the tensor", "inside the block of rows" or "before an end that sizes say": points outside read
// as 0 and are not written, which is what the copy engine does.
std::optional<TileView> view_of(const TileElements& elements, expr::ExprPool& pool,
                                std::string* why);

// A map of the plan and the coordinates of boxes in it. A box is one panel wide where the tensor's
// rows are not whole panels.
struct TileMap {
  matile::Map op;
  ir::Exprs at(expr::Expr row, expr::Expr col, expr::ExprPool& pool) const;

  std::vector<expr::Expr> rest;  // coordinates of the axes behind rows and panels
  int panel_cols = 0;
  bool has_panels = false;
};
// The coordinates of a view's box behind rows and panels.
std::vector<expr::Expr> rest_of(const TileView& view);

// Of a box: as many as the tile has, or fewer.
struct BoxExtents {
  int rows = 0;
  int cols = 0;
};
std::optional<TileMap> map_of(const TileElements& elements, const TileView& view, BoxExtents box,
                              FreshNames& names, expr::ExprPool& pool, std::string* why);

// The same for a piece of one row: elements at points of one axis, which runs along the last
// dimension. Nothing if it is no such piece, or more than a box holds.
struct RowPieceView {
  expr::Expr base;               // index of the first element, in the last dimension
  std::vector<expr::Expr> rest;  // indices of the other dimensions
  int extent = 0;
};
std::optional<RowPieceView> row_piece_view_of(const TileElements& elements, expr::ExprPool& pool);
// A map of boxes of one row, and the coordinates of the line's box.
struct RowPieceMap {
  matile::Map op;
  ir::Exprs at;
};
RowPieceMap row_piece_map_of(const TileElements& elements, const RowPieceView& view,
                             FreshNames& names, expr::ExprPool& pool);

}  // namespace nautilus::lower

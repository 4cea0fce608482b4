// SPDX-License-Identifier: Apache-2.0
// Tiles of tensors that element-wise work uses.
//
// A box of a tensor arrives as operands of products do, by the copy engine into shared memory, and
// goes to registers where it is used:
//
//   load r[i < 64, j < 128] = R[64 * m + i, 128 * n + j] when ... else 0.0
//   set y[i < 64, j < 128] = x[i, j] + f32(r[i, j])
// becomes
//   fetch r_part from R_map[128 * n, 64 * m]
//   take r_taken from r_part
//   set y[i < 64, j < 128] = x[i, j] + f32(r_taken[i, j])
//
// A piece of one row that is used along columns arrives the same way. Before a store by panels
// boxes are copied panel by panel, a piece of a row at once.
//
// Outside the tensor a copy is 0, so conditions that only keep a load inside are gone. A box of 16
// bits whose rows lie along memory is transposed where it is taken, if an operand of a product is
// made of it (K with a weight for each of its rows, as the first operand of its transpose by
// another). What is no such box, or has elements that registers do not hold in this layout, is read
// element by element where it is used.
#pragma once

#include <vector>

#include "lower/tiles/tile_copies.h"

namespace nautilus::lower {

class TileTakes {
 public:
  TileTakes(NestScope& scope, NestChoices& choices, TileCopies& copies)
      : scope_(scope), pool_(scope.pool), choices_(choices), copies_(copies) {}

  // What a load is that element-wise work uses, if the copy engine brings it. `may_turn`: also one
  // whose rows lie along memory, which is transposed on its way to registers.
  bool is_box(const TileValue& value, bool may_turn);
  bool is_row_piece(const TileValue& value);

  // Tiles in shared memory that an op uses element by element go to registers, and lines that
  // `value` reads along `column` alone (null: none).
  bool take_operands(const std::vector<ir::Name>& used, expr::Expr value, expr::Expr column,
                     ir::Block& out);
  // Fetches a box that fits the registers of a group, needed until op `last` of the block.
  bool take_box(ir::Name name, TileValue& value, size_t last, ir::Block& out);
  // A panel of a box for the panel of a store; gives the register tile.
  ir::Name take_panel(ir::Name name, const TileValue& value, expr::Expr row_offset,
                      expr::Expr col_offset, ir::Block& out, ir::Block& takes);
  // The slot tile of a line, fetched here.
  ir::Name fetch_row_piece(ir::Name name, const TileValue& value, size_t last, ir::Block& out);
  // An f32 tile of `extent` columns of it.
  ir::Name take_row_piece(ir::Name name, ir::Name slot_tile, int64_t extent, expr::Expr cols,
                          ir::Block& out);

 private:
  // Lines that the op reads along its columns alone go to registers.
  void take_row_pieces(expr::Expr value, expr::Expr column, ir::Block& out, ir::Block& takes);

  NestScope& scope_;
  expr::ExprPool& pool_;
  NestChoices& choices_;
  TileCopies& copies_;
};

}  // namespace nautilus::lower

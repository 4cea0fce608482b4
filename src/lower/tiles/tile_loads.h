// SPDX-License-Identifier: Apache-2.0
// Loads of a nest: operands of products are fetched here, or gathered element by element; what
// other ops use is fetched or read where it is used, unless its block asks for everything at once.
#pragma once

#include <unordered_map>
#include <utility>

#include "lower/tiles/tile_takes.h"

namespace nautilus::lower {

// Why a product cannot have a tile that is computed as its second operand.
std::string refuse_computed_operand(ir::Name operand);

// Why no kernel of tiles has the nest, whatever its lines say: the second operand of a product is
// copied in boxes, and the indices of one are none of a box, or it is computed of what is copied.
// Empty if nothing of this kind is known. It is what lowering says of such a nest, asked before its
// passes run: none of them makes a load of a tile that is computed.
std::string refuse_second_operands(const ir::Program& tiles, const ir::Op& nest,
                                   expr::ExprPool& pool);

class TileLoads {
 public:
  TileLoads(NestScope& scope, NestChoices& choices, TileCopies& copies, TileTakes& takes)
      : scope_(scope), pool_(scope.pool), choices_(choices), copies_(copies), takes_(takes) {}

  // Of the tiles of the grid, those that the nest uses; another one has one place, or none.
  void set_used_axes(ir::Axes axes) { used_axes_ = std::move(axes); }
  // Of a loop, before the loads in it.
  void add_loop(expr::Expr var, expr::Expr from, expr::Expr to) {
    loop_bounds_.emplace(var, std::pair<expr::Expr, expr::Expr>{from, to});
  }

  // Op k of the block.
  bool load(const ir::Block& ops, size_t k, ir::Block& out);

  // How the ops behind a load use its tile.
  struct Uses {
    bool is_operand = false;
    bool is_a = false;
    bool is_b = false;
    bool is_stored = false;      // in a store
    bool makes_operand = false;  // it is an operand of what is one of a product
    size_t last = 0;             // op of the block
  };

  // Of the ops of the block from this one on.
  static Uses uses_of(const ir::Block& block, size_t from, ir::Name name);

 private:
  bool fetch(const vrtile::Load& op, const Uses& uses, TileValue& value, ir::Block& out);
  // Loads the elements one by one into a register tile.
  bool gather(const vrtile::Load& op, TileValue& value, ir::Block& out);
  // Steps along an axis that begin at a tile's own place are the tile's own.
  bool depends_on_tile(expr::Expr e, expr::Expr tile) const;
  // No two tiles need the same of it.
  bool is_read_once(const TileElements& elements) const;
  // Every op of the block that reads the line does so along its columns.
  bool runs_along_columns(ir::Name line, const ir::Block& body) const;

  NestScope& scope_;
  expr::ExprPool& pool_;
  NestChoices& choices_;
  TileCopies& copies_;
  TileTakes& takes_;
  ir::Axes used_axes_;
  // Of the loops so far, by their variables.
  std::unordered_map<expr::Expr, std::pair<expr::Expr, expr::Expr>> loop_bounds_;
};

}  // namespace nautilus::lower

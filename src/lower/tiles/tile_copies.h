// SPDX-License-Identifier: Apache-2.0
// What the copy engine brings: the maps of tensors that the plan needs, and the slot tiles that
// boxes arrive in. Loads share both where they can.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "expr/rules/simplify.h"
#include "lower/tiles/nest_choices.h"
#include "lower/tiles/nest_scope.h"

namespace nautilus::lower {

class TileCopies {
 public:
  TileCopies(NestScope& scope, NestChoices& choices)
      : scope_(scope), pool_(scope.pool), choices_(choices), simplifier_(scope.pool) {}

  // Maps of one shape of one tensor are one; the coordinates behind rows and panels differ.
  std::optional<TileMap> map_for(const TileElements& elements, const TileView& view, int rows,
                                 int cols);
  // The same for boxes of one row, with the coordinates of this one.
  RowPieceMap row_piece_map_for(const TileElements& elements, const RowPieceView& view);
  // Loads of one map share a slot tile unless both tiles are needed at a time.
  ir::Name slot_tile_for(ir::Name load, const matile::Map& map, int rows, int cols, size_t last);
  // The rows of all groups at once, if `row` and those of the others are 64 steps apart: makes
  // `row` the first of them and remembers where the group's own begin.
  void join_groups(expr::Expr& row, int& rows, int row_step, TileValue& value);

  // The map is fetched from, by one more copy.
  void fetches(ir::Name map, const CopyFacts& facts);
  // When all maps are known: writes to them what misses bring to the second-level cache.
  void write_promotions();

  // Operands that maps bring, as lines call them; when promotions are written.
  const std::set<std::string>& copied() const { return copied_; }

  ir::Block take_maps() { return std::move(map_ops_); }
  ir::Block take_slot_tiles() { return std::move(slot_tiles_); }

 private:
  struct SlotTileUse {
    ir::Name name;
    std::string map;
    std::vector<std::pair<const ir::Block*, size_t>> busy;  // last use in a block
  };

  NestScope& scope_;
  expr::ExprPool& pool_;
  NestChoices& choices_;
  expr::Simplifier simplifier_;
  ir::Block map_ops_;
  ir::Block slot_tiles_;
  std::map<std::string, TileMap> maps_;
  std::map<std::string, matile::Map> row_piece_maps_;
  std::map<std::string, CopyFacts> copies_;  // of maps that are fetched from
  std::vector<SlotTileUse> slot_tile_uses_;
  std::set<std::string> copied_;
};

}  // namespace nautilus::lower

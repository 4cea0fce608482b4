// SPDX-License-Identifier: Apache-2.0
// One grid nest of VR-tile as a kernel in nest form (vrtile_to_matile.h says what becomes what):
// who works on its tiles, how they are numbered, its blocks and loops. What the ops in them become
// is the business of tile_loads.h, computed_tiles.h and tile_stores.h.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "lower/tiles/computed_tiles.h"
#include "lower/tiles/tile_grid.h"
#include "lower/tiles/tile_loads.h"

namespace nautilus::lower {

class NestLowering {
 public:
  NestLowering(const GridNest& nest, FreshNames& names, ir::PassContext& context,
               NestAnswers* rules, std::string* why);
  NestLowering(const NestLowering&) = delete;
  NestLowering& operator=(const NestLowering&) = delete;
  std::optional<LoweredKernel> run();

 private:
  // A tile that an iteration gives to the next one.
  struct Carried {
    ir::Name tile;
    ir::TensorType type;
    ir::Name next;
    ir::Name name;  // in the loop, of VR-tile
  };

  // Who works on the tiles, how CTAs share the machine, and how tiles are numbered.
  bool read_groups(const vrtile::Par& grid, const vrtile::Par* groups, const ir::Block& work);
  bool read_packing();
  bool read_grid(const ir::Axes& axes, GridFacts facts);
  // The coordinates of a tile, under names of the kernel.
  bool number_axes(const vrtile::Par& grid, const ir::Block& body);

  bool block(NestFrame frame, ir::Block& out);
  bool visit(const ir::Block& ops, size_t k, ir::Block& out);
  void scalar_let(const ir::Op& op, ir::Block& out);
  bool loop(const vrtile::For& op, ir::Block& out);
  // The carried tiles with their first values.
  std::optional<std::vector<Carried>> carry(const ir::Block& body, ir::Block& out);
  // Their next values, at the end of the loop.
  bool carry_on(const std::vector<Carried>& carried, ir::Block& out);

  std::optional<LoweredKernel> assemble(ir::Block body);

  ir::PassContext& context_;
  NestScope scope_;
  expr::ExprPool& pool_;
  NestChoices choices_;
  TileCopies copies_;
  TileTakes takes_;
  TileLoads loads_;
  TileStores stores_;
  ComputedTiles computed_;
  std::string_view kernel_name_;
  CtaPacking packing_;
  TileGrid grid_;
  ir::Axes tile_axes_;
  bool alternates_ = false;
  ir::Name group_index_;
  ir::Name role_name_;
  ir::Block lines_;  // that later passes read
  std::deque<ir::Block> reordered_;
};

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// Values that a kernel computes: element-wise ones, reductions, votes and products.
#pragma once

#include <vector>

#include "lower/tiles/tile_stores.h"

namespace nautilus::lower {

class ComputedTiles {
 public:
  ComputedTiles(NestScope& scope, TileTakes& takes, TileStores& stores)
      : scope_(scope), pool_(scope.pool), takes_(takes), stores_(stores) {}

  // Op k of the block.
  bool set(const vrtile::Set& op, const ir::Block& ops, size_t k, ir::Block& out);
  bool reduce(const vrtile::Reduce& op, const std::vector<ir::Name>& used, ir::Block& out);
  bool dot(const vrtile::Dot& op, ir::Block& out);
  bool has_dot() const { return has_dot_; }

 private:
  // `any[x < 16] c[16 * g + x]` for all g: a warp holds 16 rows of a tile of 64.
  bool vote(const vrtile::Reduce& op, ir::Block& out);

  NestScope& scope_;
  expr::ExprPool& pool_;
  TileTakes& takes_;
  TileStores& stores_;
  bool has_dot_ = false;
};

}  // namespace nautilus::lower

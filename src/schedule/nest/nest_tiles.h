// SPDX-License-Identifier: Apache-2.0
// Tiles of a warp group inside a nest: local buffers, and the loops over their places that fill
// them.
#pragma once

#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

struct LocalTile {
  ir::Name name;
  std::vector<Expr> axes;
};

class NestTiles {
 public:
  NestTiles(const Tiling& tiling, const TileConfig& sizes, expr::ExprPool& pool, Names& names)
      : tiling_(tiling), sizes_(sizes), pool_(pool), names_(names) {}

  ir::Name fresh_name(std::string_view stem) { return pool_.name(names_.fresh(stem)); }

  LocalTile make(std::string_view stem, expr::DType dtype, std::vector<Expr> axes);
  Expr read(const LocalTile& tile, expr::DType dtype);

  void emit_store(ir::Block& out, const LocalTile& tile, Expr value);
  // init, and / or a reduce loop with the update.
  void emit_reduction(ir::Block& out, const LocalTile& tile, Expr init, Expr axis,
                      expr::Reducer reducer, Expr value);
  // Writes places of a tile to a buffer in memory, where the condition holds; null: everywhere.
  void emit_result(ir::Block& out, ir::Name target, const ir::Exprs& indices, Expr value,
                   Expr condition, const std::vector<Expr>& axes);

  // The buffers of the tiles, and further buffers of the nest.
  std::vector<scalar::Buffer>& buffers() { return buffers_; }

 private:
  int64_t extent_of(Expr axis) const;
  ir::Axes lanes(const std::vector<Expr>& axes);

  const Tiling& tiling_;
  const TileConfig& sizes_;
  expr::ExprPool& pool_;
  Names& names_;
  std::vector<scalar::Buffer> buffers_;
};

}  // namespace nautilus::schedule

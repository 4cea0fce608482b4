// SPDX-License-Identifier: Apache-2.0
// From the grid of a tile nest to numbered tiles: how many there are, in which order they are
// taken, and the coordinates of tile t.
#pragma once

#include "decision/decisions.h"
#include "lower/kernel/lowered_kernel.h"
#include "matile/ops.h"
#include "target/target.h"

namespace nautilus::lower {

struct GridFacts {
  // Two axes whose tiles share operands: those along the first with the same second one, and the
  // other way round. Numbers of axes; -1 if there are none.
  int rows = -1;
  int cols = -1;
  // An axis with which the work of a tile grows (its loops have more steps); -1 if all are alike.
  int growing = -1;
  // An axis along which neighbours read the same tiles, with growing; -1 if there is none.
  int repeated = -1;
  // CTAs of a cluster have neighbouring tiles along `rows`.
  CtaPacking packing;
  // How tiles are ordered and handed out; the axes above are those that it needs.
  decision::TileOrder order;
  decision::TileSource source;
  // Bytes that all tiles of one value of the other axes read again and again.
  expr::Expr shared_bytes;
  ir::Name machine;  // the number of multiprocessors
};

struct TileGrid {
  ir::Block plan;    // lets, a counter
  matile::Tiles op;  // of the kernel
  ir::Block decode;  // lets in the walk over the tiles
  ir::Name tile;     // variable of the walk
  expr::Expr launch;
  ir::Name rank;  // of a CTA in its cluster; null: no clusters
};

// * raster: groups of rows of tiles are walked column by column, so that tiles that run together
//   share operands in the second-level cache.
// * longest: the longest tiles first, in sections whose shared bytes stay in the cache. Within them
//   the repeated axis runs fastest.
// * plain: the last axis runs fastest.
//
// Why the grid cannot have this order or source; empty if it can.
std::string refuse_order(const decision::TileOrder& order, const GridFacts& facts,
                         const target::Target& target);
std::string refuse_source(const decision::TileSource& source, const GridFacts& facts);

TileGrid number_tiles(const ir::Axes& axes, const GridFacts& facts, FreshNames& names,
                      expr::ExprPool& pool);

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// The reads of a tile statement: elements of tensors become loads, elements of local buffers become
// elements of tiles.
//
//   where(80 * n + j < N and j <= i, K[80 * n + j, d], 0.0)
// becomes
//   load k[j < 80, d < 64] = K[80 * n + j, d] when 80 * n + j < N else 0.0
// and where(j <= i, k[j, d], 0.0): a load is guarded by what keeps it inside its tensor, and by
// nothing else as long as that suffices.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "expr/bounds/bounds.h"
#include "ir/op.h"
#include "vrtile/names.h"

namespace nautilus::lower {

class TileReads {
 public:
  using Tiles = std::unordered_map<ir::Name, ir::Name>;        // local buffer to tile
  using Types = std::unordered_map<ir::Name, ir::TensorType>;  // of all buffers

  TileReads(expr::ExprPool& pool, vrtile::Names& names, const Types& types, const Tiles& tiles,
            const expr::Facts& facts)
      : pool_(pool), names_(names), types_(types), tiles_(tiles), facts_(facts) {}

  // The expression over tiles; loads are appended to `out`. `axes` are those of the statement. A
  // load with the axes `order` (as a set) has them in that order, so that it fits the tile it is
  // for; other loads have them in the order in which the tensor has them. Null if a local buffer
  // without a value is read (`error` says so).
  ir::Expr convert(ir::Expr e, const ir::Axes& axes, ir::Block& out,
                   const std::vector<ir::Expr>& order = {});
  const std::string& error() const { return error_; }

 private:
  ir::Expr go(ir::Expr e, std::vector<ir::Expr>& path);
  ir::Expr with_joined_guards(ir::Expr e);
  ir::Expr select(ir::Expr e, std::vector<ir::Expr>& path);
  ir::Expr guarded(ir::Expr read, ir::Expr condition, ir::Expr other, std::vector<ir::Expr>& path);
  ir::Expr load(ir::Expr read, ir::Expr condition, ir::Expr other, std::vector<ir::Expr>& path);
  bool is_global(ir::Expr e) const;
  bool reads_global(ir::Expr e) const;
  bool stays_inside(ir::Expr read, const std::vector<ir::Expr>& conditions) const;
  bool is_range_of(ir::Expr read, ir::Expr condition) const;

  expr::ExprPool& pool_;
  vrtile::Names& names_;
  const Types& types_;
  const Tiles& tiles_;
  const expr::Facts& facts_;
  const ir::Axes* axes_ = nullptr;
  const std::vector<ir::Expr>* order_ = nullptr;
  ir::Block* out_ = nullptr;
  std::string error_;
};

// Zero, or false.
ir::Expr zero(expr::ExprPool& pool, ir::DType dtype);

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// What a nest writes: boxes and panels that the copy engine stores, or single elements. A tile that
// only such stores use is computed with them, panel by panel, and waits until then.
#pragma once

#include <vector>

#include "lower/tiles/tile_takes.h"

namespace nautilus::lower {

class TileStores {
 public:
  TileStores(NestScope& scope, TileCopies& copies, TileTakes& takes)
      : scope_(scope), pool_(scope.pool), copies_(copies), takes_(takes) {}

  // A tile of the last block that only stores use, and that is stored panel by panel. Op k of the
  // block.
  bool is_deferred(const vrtile::Set& op, const ir::Block& ops, size_t k) const;
  void defer(const vrtile::Set& op) { deferred_.push_back(op); }
  bool has_deferred() const { return !deferred_.empty(); }
  // Everything that was deferred is computed.
  bool is_complete() const { return deferred_.empty() || stored_panels_; }

  bool store(const vrtile::Store& op, const std::vector<ir::Name>& used, ir::Block& out);

 private:
  // Boxes that the values of a panel store read at exactly the panel's elements, and lines that
  // they read along its columns.
  struct PanelLoads {
    std::vector<ir::Name> boxes;
    std::vector<ir::Name> lines;
  };

  // The code of one panel while it is written: where its elements lie in the tile, and which
  // elements of its own tiles stand for those of whole ones.
  struct Panel {
    matile::Unroll unroll;
    expr::Expr row;
    expr::Expr col;
    expr::Expr row_offset;  // of its block of rows; none if there is one block
    std::vector<std::pair<expr::Expr, expr::Expr>> tiles;
  };
  struct PanelTile {
    ir::Name name;
    ir::TensorType type;
  };

  // Stored by the copy engine, in panels of 64 columns.
  bool stores_panels(const vrtile::Store& op) const;
  // Whole rows of a tensor: one box.
  bool stores_whole(const vrtile::Store& op) const;
  bool store_whole(const vrtile::Store& op, const TileElements& elements, const TileView& view,
                   ir::Block& out);
  bool store_panels(const vrtile::Store& op, const TileElements& elements, const TileView& view,
                    ir::Block& out);
  // Takes what the panel reads to registers; false if that has no form.
  bool take_loads(const vrtile::Store& op, Panel& panel, ir::Block& out);
  // A tile of the panel with this value, which is of the elements of the whole tile.
  std::optional<PanelTile> set_panel(expr::Expr value, const ir::Axes& axes, std::string_view stem,
                                     Panel& panel);
  // In the panel, its tile `part` stands for the whole tile `stem`.
  void stand_for(ir::Name stem, ir::Name part, expr::DType dtype, Panel& panel);
  PanelLoads panel_loads(const vrtile::Store& op);
  bool put(const vrtile::Store& op, ir::Block& out);

  NestScope& scope_;
  expr::ExprPool& pool_;
  TileCopies& copies_;
  TileTakes& takes_;
  std::vector<vrtile::Set> deferred_;
  bool stored_panels_ = false;
};

}  // namespace nautilus::lower

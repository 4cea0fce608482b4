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

  // Stored by the copy engine, in panels of 64 columns.
  bool stores_panels(const vrtile::Store& op) const;
  // Whole rows of a tensor: one box.
  bool stores_whole(const vrtile::Store& op) const;
  bool store_whole(const vrtile::Store& op, const TileElements& elements, const TileView& view,
                   ir::Block& out);
  bool store_panels(const vrtile::Store& op, const TileElements& elements, const TileView& view,
                    ir::Block& out);
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

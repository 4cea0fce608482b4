// SPDX-License-Identifier: Apache-2.0
// The tiles that a local buffer becomes: one for every time it is written.
#pragma once

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/op.h"
#include "vrtile/names.h"

namespace nautilus::lower {

// The buffer that a scalar statement writes; no name for other ops.
ir::Name written_by(const ir::Op& op);

class TileVersions {
 public:
  using Types = std::unordered_map<ir::Name, ir::TensorType>;  // of buffers

  TileVersions(vrtile::Names& names, const Types& types) : names_(names), types_(types) {}

  // To be called for the block of a kernel first: finds the buffers that have values before a loop
  // that writes them.
  void find_carried(const ir::Block& ops) { find_carried(ops, {}); }

  // The name of the buffer's next tile: x_init where it starts, x_next in the loop that carries it.
  ir::Name next(ir::Name buffer, bool is_init, bool is_in_loop);
  // The name of the tile that a loop carries for the buffer.
  ir::Name carry(ir::Name buffer) { return claim(buffer, ""); }
  // A tile that is combined with the buffer's value.
  ir::Name part(ir::Name buffer);

  void remember(const ir::Op& op);
  // Null for names that are no tile.
  const ir::TensorType* type(ir::Name tile) const;

 private:
  void find_carried(const ir::Block& ops, std::unordered_set<ir::Name> has_value);
  ir::Name claim(ir::Name buffer, std::string_view suffix);
  ir::Name fresh(ir::Name buffer, std::string_view suffix);

  vrtile::Names& names_;
  const Types& types_;
  Types tiles_;
  std::unordered_set<ir::Name> carried_;
  std::unordered_set<ir::Name> claimed_;
};

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/to_vrtile/tile_versions.h"

#include <fmt/format.h>

#include "ir/walk.h"
#include "scalar/ops.h"
#include "vrtile/ops.h"

namespace nautilus::lower {

using ir::Name;
using ir::Op;

Name written_by(const Op& op) {
  if (const auto* s = op.get<scalar::Store>()) return s->target;
  if (const auto* s = op.get<scalar::Init>()) return s->target;
  if (const auto* s = op.get<scalar::Update>()) return s->target;
  if (const auto* s = op.get<scalar::UpdateArg>()) return s->target;
  return {};
}

void TileVersions::find_carried(const ir::Block& ops, std::unordered_set<Name> has_value) {
  for (const Op& op : ops) {
    std::unordered_set<Name> written;
    ir::for_each_op({op}, [&](const Op& inner) {
      if (const Name n = written_by(inner)) written.insert(n);
    });
    if (op.is<scalar::Loop>()) {
      for (Name n : written) {
        if (has_value.contains(n)) carried_.insert(n);
      }
      find_carried(op.as<scalar::Loop>().body, has_value);
    }
    if (op.is<scalar::For>()) find_carried(op.as<scalar::For>().body, has_value);
    has_value.insert(written.begin(), written.end());
  }
}

Name TileVersions::next(Name buffer, bool is_init, bool is_in_loop) {
  const bool is_carried = carried_.contains(buffer);
  if (is_init || (is_carried && !is_in_loop)) return claim(buffer, "_init");
  return claim(buffer, is_carried ? "_next" : "");
}

Name TileVersions::part(Name buffer) { return fresh(buffer, "_part"); }

// The buffer's own name is free for its first tile.
Name TileVersions::claim(Name buffer, std::string_view suffix) {
  if (!suffix.empty() || !claimed_.insert(buffer).second) return fresh(buffer, suffix);
  tiles_.insert_or_assign(buffer, types_.at(buffer));
  return buffer;
}

Name TileVersions::fresh(Name buffer, std::string_view suffix) {
  const Name tile = names_.fresh(fmt::format("{}{}", buffer.str(), suffix));
  tiles_.insert_or_assign(tile, types_.at(buffer));
  return tile;
}

void TileVersions::remember(const Op& op) {
  tiles_.insert_or_assign(vrtile::defined(op), vrtile::type_of(op));
}

const ir::TensorType* TileVersions::type(Name tile) const {
  const auto it = tiles_.find(tile);
  return it == tiles_.end() ? nullptr : &it->second;
}

}  // namespace nautilus::lower

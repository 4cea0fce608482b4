// SPDX-License-Identifier: Apache-2.0
#include "emit/kernel/rings.h"

#include <algorithm>

namespace nautilus::emit {

using ir::Op;
using matile::RingInfo;
using matile::SlotTileInfo;

void RingEmitter::fill(const matile::Fill& op) {
  const RingInfo& ring = *scope_.resources.ring(op.ring);
  const std::string name = identifier(op.ring.str());
  int bytes = 0;
  for (const SlotTileInfo& slot_tile : ring.slot_tiles) bytes += slot_tile.tile.bytes();
  std::string copy;
  if (op.group) {
    const std::string g = identifier(op.group.str());
    scope_.define(op.group);
    scope_.facts.add_size(scope_.pool.index(op.group));
    out_.open("UNROLL for (int {0} = 0; {0} < {1}; ++{0}) {{", g, ring.copies);
    out_.line("const u32 full = {}.fill_copy({}, {});", name, g, bytes);
    copy = fmt::format(" + {} * {}", g, ring.copy_bytes());
  } else {
    out_.open("{{");
    out_.line("const u32 full = {}.fill({});", name, bytes);
  }
  for (const Op& inner : op.body) {
    const auto& c = inner.as<matile::Copy>();
    const auto [owner, slot_tile] = scope_.resources.slot_tile(c.slot_tile);
    const std::string panel =
        c.panel ? fmt::format(" + {}", *c.panel * slot_tile->tile.panel_bytes()) : "";
    const std::string to = scope_.slot_address(ring, *slot_tile) + copy + panel;
    const std::string map = identifier(c.map.str());
    if (c.reach == matile::Reach::Own) {
      out_.line("tma_load({}, &p.{}, full{});", to, map, scope_.list(c.at));
      continue;
    }
    const matile::Share share = *matile::share_of(*slot_tile, scope_.resources.cluster);
    const std::string mine =
        scope_.kernel.rank ? identifier(scope_.kernel.rank.str()) : "(" + scope_.rank() + ")";
    std::string at;
    for (size_t k = 0; k < c.at.size(); ++k) {
      at += ", ";
      if (k == share.axis) {
        at += share.extent > 1 ? fmt::format("{} * {}", mine, share.extent) : mine;
        if (c.at[k].is_int(0)) continue;
        at += " + ";
      }
      // Only a choice binds weaker than a sum.
      at += c.at[k].op() == expr::Op::Select ? "(" + scope_.text(c.at[k]) + ")"
                                             : scope_.text(c.at[k]);
    }
    out_.line("tma_load_all<{}>({} + {} * {}, &p.{}, full{});", scope_.resources.cluster, to, mine,
              share.bytes, map, at);
  }
  if (op.group) {
    out_.close();
    return out_.line("{}.advance();", name);
  }
  out_.line("{}.advance();", name);
  out_.close();
}

void RingEmitter::get(ir::Name ring) {
  // The cursor is at the newest slot held, or at the next one if none is held.
  if (held_[std::string(ring.str())]++ > 0) out_.line("{}.advance();", identifier(ring.str()));
  out_.line("{}.get();", identifier(ring.str()));
}

// The oldest slot held is `held - 1` gets before the cursor.
void RingEmitter::release(ir::Name ring) {
  int& held = held_[std::string(ring.str())];
  const bool is_stage = std::any_of(scope_.resources.stages.begin(), scope_.resources.stages.end(),
                                    [&](const auto& s) { return s.op->ring == ring; });
  if (is_stage) out_.line("if (leader) tma_wait_read<0>();");
  out_.line("{}.release({}, lane);", identifier(ring.str()), held - 1);
  if (--held == 0) out_.line("{}.advance();", identifier(ring.str()));
}

}  // namespace nautilus::emit

// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/ring_use.h"

#include <algorithm>

#include "ir/operand_width.h"
#include "ir/walk.h"
#include "matile/resources.h"

namespace nautilus::matile {

using ir::Op;

int64_t slot_bytes(const NestRing& ring, const target::Copies& copies) {
  int64_t bytes = 0;
  for (const SlotTile& p : ring.ops)
    bytes += estimate::bytes_to_next_tile(panel_tile(p.type, p.swizzle).bytes(), copies);
  return bytes;
}

bool is_in_product_loop(const Role& role, const NestRing& ring) {
  bool found = false;
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* loop = op.get<Loop>();
    if (!loop) return;
    bool fetches = false;
    bool is_pure = true;
    for (const Op& inner : loop->body) {
      const auto* f = inner.get<Fetch>();
      fetches |= f && f->slot_tile.str() == ring.slot_tiles[0];
      is_pure &= f || inner.is<Dot>() || inner.is<Let>();
    }
    found |= fetches && is_pure;
  });
  return found;
}

bool is_operand(const Role& role, const NestRing& ring) {
  bool found = false;
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* d = op.get<Dot>();
    if (!d) return;
    for (const std::string& slot_tile : ring.slot_tiles)
      found |= d->a.str() == slot_tile || d->b.str() == slot_tile;
  });
  return found;
}

int64_t slots_ahead(const Role& role, const NestRing& ring, const OperandDepths& depths,
                    const target::Target& target) {
  // What is converted in registers first becomes an operand of 16 bits.
  const target::OperandWidth* width = ir::operand_width(target.matrix, ring.ops[0].type.dtype);
  const auto products_per_clock =
      static_cast<int64_t>(target.costs.products_per_cycle * (width ? width->speed : 1));
  const auto tiles = declared_tiles(role);
  int64_t clocks = 0;
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* loop = op.get<Loop>();
    if (!loop) return;
    bool fetches = false;
    int64_t work = 0;
    for (const Op& inner : loop->body) {
      if (const auto* f = inner.get<Fetch>()) fetches |= f->slot_tile.str() == ring.slot_tiles[0];
      const auto* d = inner.get<Dot>();
      if (!d) continue;
      const auto acc = tiles.find(d->acc.str());
      const auto depth = depths.find(d->a.str());
      if (acc == tiles.end() || depth == depths.end()) continue;
      const auto shape = static_shape(acc->second.type);
      work += shape[0] * int64_t{shape[1]} * depth->second;
    }
    if (fetches && work > 0)
      clocks = std::max<int64_t>(work * role.count.value_or(1) / products_per_clock, 1);
  });
  if (clocks == 0) return 0;
  return std::min(target.tiles.slots_alone, 1 + (target.copies.latency + clocks - 1) / clocks);
}

OperandDepths operand_depths(const Role& role, const std::vector<NestRing>& rings) {
  OperandDepths out;
  for (const auto& [name, tile] : declared_tiles(role)) {
    if (tile.type.dims.size() == 2) out.emplace(name, static_shape(tile.type)[1]);
  }
  for (const NestRing& ring : rings) {
    for (const SlotTile& p : ring.ops)
      out.emplace(std::string(p.name.str()), static_shape(p.type).back());
  }
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* d = op.get<Dot>();
    if (!d || d->trans_a != Trans::Yes) return;
    for (const NestRing& ring : rings) {
      for (const SlotTile& p : ring.ops) {
        if (p.name == d->a)
          out.insert_or_assign(std::string(p.name.str()), static_shape(p.type)[0]);
      }
    }
  });
  return out;
}

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
#include "matile/resources.h"

#include <algorithm>

#include "estimate/registers.h"
#include "ir/walk.h"
#include "layout/convert.h"
#include "layout/fragments.h"
#include "layout/line.h"
#include "target/target.h"

namespace nautilus::matile {
namespace {

int aligned(int bytes, int alignment) { return (bytes + alignment - 1) / alignment * alignment; }

bool contains(const ir::Block& block, auto&& predicate) {
  bool found = false;
  ir::for_each_op(block, [&](const ir::Op& op) { found |= predicate(op); });
  return found;
}

// How many of the role's groups meet at each slot of a ring: all, unless they alternate tiles.
int groups_per_slot(const RoleInfo& role) {
  int divisor = 1;
  ir::for_each_op(role.op->body, [&](const ir::Op& op) {
    if (const auto* e = op.get<Each>()) divisor = static_cast<int>(e->alternate.value_or(divisor));
  });
  return std::max(1, role.groups() / divisor);
}

void count_ring_users(Resources& r) {
  for (RingInfo& ring : r.rings) {
    for (const RoleInfo& role : r.roles) {
      const ir::Name name = ring.op->name;
      if (contains(role.op->body, [&](const ir::Op& op) {
            const auto* f = op.get<Fill>();
            return f && f->ring == name;
          }))
        ring.filler = role.op;
      const bool reads = contains(role.op->body, [&](const ir::Op& op) {
        const auto* g = op.get<Get>();
        const auto* s = op.get<Skip>();
        return (g && g->ring == name) || (s && s->ring == name);
      });
      if (contains(role.op->body, [&](const ir::Op& op) {
            const auto* c = op.get<Copy>();
            return c && c->reach == Reach::Multicast &&
                   std::any_of(ring.slot_tiles.begin(), ring.slot_tiles.end(),
                               [&](const SlotTileInfo& slot_tile) {
                                 return slot_tile.op->name == c->slot_tile;
                               });
          }))
        ring.ctas = r.cluster;
      if (reads) ring.readers += 4 * (ring.op->per ? 1 : groups_per_slot(role));
    }
    ring.readers *= ring.ctas;
  }
}

void count_tile_users(Resources& r) {
  for (TilesInfo& tiles : r.tiles) {
    for (const RoleInfo& role : r.roles) {
      if (!contains(role.op->body, [&](const ir::Op& op) {
            const auto* e = op.get<Each>();
            return e && e->tiles == tiles.op->name;
          }))
        continue;
      if (!tiles.fetcher)
        tiles.fetcher = role.op;
      else
        tiles.readers += role.is_compute() ? 4 * role.groups() : 1;
    }
  }
}

// For the largest tile that is reduced or converted through shared memory: four bytes for each warp
// and each element that a warp holds, or for each element.
int scratch_bytes(const Role& role) {
  int64_t bytes = 0;
  ir::for_each_op(role.body, [&](const ir::Op& op) {
    const auto* warps = op.get<Warps>();
    const auto* convert = op.get<Convert>();
    if (!warps && !(convert && convert->kind == ConvertKind::Shared)) return;
    ir::for_each_op(role.body, [&](const ir::Op& declared) {
      const auto* tile = declared.get<Tile>();
      if (!tile || tile->name != (warps ? warps->tile : convert->target)) return;
      const layout::Layout layout = layout_of(*tile);
      bytes = std::max<int64_t>(bytes, warps ? 16 * layout.registers() * distinct_lanes(layout)
                                             : (4 * layout.elements() + 15) / 16 * 16);
    });
  });
  return static_cast<int>(bytes);
}

void collect(const Kernel& kernel, Resources& r) {
  int compute_groups = 0;
  for (const ir::Op& op : kernel.body) {
    if (const auto* ring = op.get<Ring>()) {
      RingInfo info{.op = ring, .slot_tiles = {}};
      for (const ir::Op& inner : ring->body) {
        const auto& slot_tile = inner.as<SlotTile>();
        const layout::PanelTile tile = panel_tile(slot_tile.type, slot_tile.swizzle);
        info.slot_tiles.push_back({&slot_tile, tile, info.slot_bytes});
        info.slot_bytes +=
            static_cast<int>(estimate::bytes_to_next_tile(tile.bytes(), r.target->copies));
      }
      r.rings.push_back(info);
    } else if (const auto* stage = op.get<Stage>()) {
      r.stages.push_back({stage, panel_tile(stage->type, MapSwizzle::B128), 0});
    } else if (const auto* turn = op.get<Turn>()) {
      r.turns.push_back({turn, 0, 0});
    } else if (const auto* tiles = op.get<Tiles>()) {
      r.tiles.push_back({.op = tiles});
    } else if (const auto* role = op.get<Role>()) {
      RoleInfo info{role, 0, 0};
      if (info.is_compute()) {
        info.first_group = 1 + compute_groups;
        compute_groups += info.groups();
      }
      r.roles.push_back(info);
    }
  }
  const bool has_loader = std::any_of(r.roles.begin(), r.roles.end(),
                                      [](const RoleInfo& role) { return !role.is_compute(); });
  // Without loading roles there is no first group for them.
  if (!has_loader) {
    for (RoleInfo& role : r.roles) --role.first_group;
  }
  r.threads = 128 * (compute_groups + (has_loader ? 1 : 0));
}

}  // namespace

layout::Swizzle swizzle_of(MapSwizzle swizzle) {
  switch (swizzle) {
    case MapSwizzle::B128:
      return layout::Swizzle::B128;
    case MapSwizzle::B64:
      return layout::Swizzle::B64;
    case MapSwizzle::B32:
      return layout::Swizzle::B32;
    case MapSwizzle::None:
      return layout::Swizzle::None;
  }
  return layout::Swizzle::None;
}

std::optional<Share> share_of(const SlotTileInfo& slot_tile, int ctas) {
  constexpr int kAtomRows = 8;  // after which the swizzle repeats
  const layout::PanelTile& tile = slot_tile.tile;
  const int panels = tile.cols / tile.panel_cols();
  if (panels > 1) {
    if (panels % ctas != 0) return std::nullopt;
    return Share{2, panels / ctas, tile.bytes() / ctas};
  }
  if (tile.rows % (kAtomRows * ctas) != 0) return std::nullopt;
  return Share{1, tile.rows / ctas, tile.bytes() / ctas};
}

std::vector<int> static_shape(const ir::TensorType& type) {
  constexpr int64_t kMostExtent = 1 << 16;  // no tile is larger; what is counted from it then fits
  std::vector<int> shape;
  for (ir::Expr d : type.dims)
    shape.push_back(d.op() == expr::Op::IntConst && d.integer() > 0 && d.integer() <= kMostExtent
                        ? static_cast<int>(d.integer())
                        : 0);
  return shape;
}

layout::PanelTile panel_tile(const ir::TensorType& type, MapSwizzle swizzle) {
  const std::vector<int> shape = static_shape(type);
  return {shape.at(0), shape.at(1), swizzle_of(swizzle), expr::bytes(type.dtype)};
}

namespace {

layout::Layout line_of(const Tile& tile, const std::vector<int>& shape) {
  const auto by = static_cast<int>(tile.by.value_or(16 / expr::bytes(tile.type.dtype)));
  const auto lanes = static_cast<int>(tile.lanes.value_or(0));
  if (shape.empty()) return lanes > 0 ? layout::line_value(lanes) : layout::line_value();
  return lanes > 0 ? layout::line(shape.at(0), by, lanes) : layout::line(shape.at(0), by);
}

}  // namespace

layout::Layout layout_of(const Tile& tile) {
  const std::vector<int> shape = static_shape(tile.type);
  const auto accumulator = [](int rows, int cols) {
    layout::Layout acc = layout::acc(cols);
    return rows > 64 ? acc.repeat(0, rows / 64, layout::Owner::Register) : acc;
  };
  switch (tile.spread) {
    case Spread::Unset:
      return {};
    case Spread::Acc:
      return accumulator(shape.at(0), shape.at(1));
    case Spread::Row:
      return layout::drop_axis(accumulator(shape.at(0), 8), 1).result;
    case Spread::Col:
      return layout::drop_axis(accumulator(64, shape.at(0)), 0).result;
    case Spread::RowVector:
      return line_of(tile, shape);
    case Spread::Own:
      return layout::line_value();
  }
  return {};
}

int64_t registers_of(const Tile& tile) {
  return estimate::element_registers(layout_of(tile).registers(), expr::bytes(tile.type.dtype));
}

std::map<std::string, const Tile*, std::less<>> product_tiles(const Role& role,
                                                              const ir::Block& block) {
  std::map<std::string, const Tile*, std::less<>> declared;
  ir::for_each_op(role.body, [&](const ir::Op& op) {
    if (const auto* t = op.get<Tile>()) declared.emplace(t->name.str(), t);
  });
  std::map<std::string, const Tile*, std::less<>> out;
  ir::for_each_op(block, [&](const ir::Op& op) {
    const auto* d = op.get<Dot>();
    if (!d) return;
    for (const ir::Name name : {d->acc, d->a}) {
      if (const auto it = declared.find(name.str()); it != declared.end()) out.insert(*it);
    }
  });
  return out;
}

int64_t product_registers(const Role& role, const ir::Block& block) {
  int64_t sum = 0;
  for (const auto& [name, tile] : product_tiles(role, block)) sum += registers_of(*tile);
  return sum;
}

int distinct_lanes(const layout::Layout& layout) {
  int lanes = 1;
  for (const layout::Digit& d : layout.digits()) {
    if (d.owner == layout::Owner::Lane && d.axis != layout::kCopies) lanes *= d.extent;
  }
  return lanes;
}

namespace {

// Rings and stages, then the barriers of rings; gives the end of them.
int place_rings_and_stages(Resources& r) {
  int offset = 0;
  for (RingInfo& ring : r.rings) {
    if (const RoleInfo* owner = ring.op->per ? r.role(ring.op->per) : nullptr)
      ring.copies = owner->groups();
    ring.offset = offset;
    offset += static_cast<int>(ring.use().bytes());
  }
  for (StageInfo& stage : r.stages) {
    const RoleInfo* owner = r.role(stage.op->role);
    if (const RingInfo* ring = stage.op->ring ? r.ring(stage.op->ring) : nullptr) {
      stage.offset = ring->offset;
      continue;
    }
    stage.offset = offset;
    offset += static_cast<int>(stage.use(owner ? owner->groups() : 1, r.target->copies).bytes());
  }
  for (RingInfo& ring : r.rings) {
    ring.barriers = offset;
    offset += ring.copies * ring.barrier_bytes();
  }
  return offset;
}

// What the threads of a role exchange, from that offset; gives the end of it.
int place_exchanges(RoleInfo& role, int cluster, int offset) {
  role.scratch_bytes = scratch_bytes(*role.op);
  role.scratch = aligned(offset, 16);
  if (role.scratch_bytes) offset = role.scratch + 2 * role.groups() * role.scratch_bytes;
  if (contains(role.op->body, [](const ir::Op& op) { return op.is<Groups>(); })) {
    role.meeting = aligned(offset, 16);
    role.meeting_bytes = 16 * role.groups();  // a word for each warp
    offset = role.meeting + 2 * role.meeting_bytes;
  }
  if (contains(role.op->body, [](const ir::Op& op) { return op.is<Ctas>(); })) {
    role.cluster_meeting = aligned(offset, 16);
    role.cluster_meeting_bytes = aligned(4 * cluster, 16);
    offset = role.cluster_meeting + 2 * role.cluster_meeting_bytes;
  }
  return offset;
}

void place_shared_memory(const Kernel& kernel, Resources& r) {
  int offset = place_rings_and_stages(r);
  for (RoleInfo& role : r.roles) offset = place_exchanges(role, r.cluster, offset);
  for (TilesInfo& tiles : r.tiles) {
    if (tiles.op->source != TileSource::Dynamic) continue;
    tiles.barriers = offset;
    tiles.values = offset + 32;
    offset += 48;
  }
  if (contains(kernel.body, [](const ir::Op& op) { return op.is<Ticket>(); })) {
    r.tickets = offset;
    offset += 4 * r.threads / 128;
  }
  r.shared_bytes = aligned(offset, 16);
}

void number_barriers(Resources& r) {
  for (RoleInfo& role : r.roles) {
    if (!role.is_compute()) continue;
    role.sync = r.named_barriers;
    r.named_barriers += role.groups();
    if (role.meeting_bytes) role.meeting_sync = r.named_barriers++;
  }
  for (TurnInfo& turn : r.turns) {
    const RoleInfo* role = r.role(turn.op->role);
    turn.groups = role ? role->groups() : 1;
    turn.barrier = r.named_barriers;
    r.named_barriers += turn.groups;
  }
}

}  // namespace

Resources resources_of(const Kernel& kernel, const target::Target& target) {
  Resources r;
  r.target = &target;
  r.resident = static_cast<int>(kernel.resident.value_or(1));
  r.cluster = kernel.ctas();
  collect(kernel, r);
  count_ring_users(r);
  count_tile_users(r);
  place_shared_memory(kernel, r);
  number_barriers(r);
  return r;
}

int Resources::launch_registers() const { return target->limits.registers(threads, resident); }

bool Resources::moves_registers() const {
  return std::any_of(roles.begin(), roles.end(), [&](const RoleInfo& role) {
    return role.op->regs.value_or(0) > launch_registers();
  });
}

const RingInfo* Resources::ring(ir::Name name) const {
  for (const RingInfo& r : rings) {
    if (r.op->name == name) return &r;
  }
  return nullptr;
}
std::pair<const RingInfo*, const SlotTileInfo*> Resources::slot_tile(ir::Name name) const {
  for (const RingInfo& r : rings) {
    for (const SlotTileInfo& p : r.slot_tiles) {
      if (p.op->name == name) return {&r, &p};
    }
  }
  return {nullptr, nullptr};
}
const StageInfo* Resources::stage(ir::Name name) const {
  for (const StageInfo& s : stages) {
    if (s.op->name == name) return &s;
  }
  return nullptr;
}
const TurnInfo* Resources::turn(ir::Name name) const {
  for (const TurnInfo& t : turns) {
    if (t.op->name == name) return &t;
  }
  return nullptr;
}
const TilesInfo* Resources::tiles_of(ir::Name name) const {
  for (const TilesInfo& t : tiles) {
    if (t.op->name == name) return &t;
  }
  return nullptr;
}
const RoleInfo* Resources::role(ir::Name name) const {
  for (const RoleInfo& r : roles) {
    if (r.op->name == name) return &r;
  }
  return nullptr;
}

}  // namespace nautilus::matile

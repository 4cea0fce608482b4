// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/nest_resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimate/registers.h"
#include "ir/walk.h"
#include "matile/resources.h"

namespace nautilus::matile {
namespace {

using ir::Op;

constexpr int64_t kMostStages = 4;  // buffers of a store

int64_t slot_bytes(const NestRing& ring, const target::Copies& copies) {
  int64_t bytes = 0;
  for (const SlotTile& p : ring.ops)
    bytes += estimate::bytes_to_next_tile(panel_tile(p.type, p.swizzle).bytes(), copies);
  return bytes;
}

// A loop that fetches the ring and otherwise has only products.
bool is_in_product_loop(const Role& role, const NestRing& ring) {
  bool found = false;
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* loop = op.get<Loop>();
    if (!loop) return;
    bool fetches = false;
    bool is_pure = true;
    for (const Op& inner : loop->body) {
      const auto* f = inner.get<Fetch>();
      fetches |= f && f->part.str() == ring.parts[0];
      is_pure &= f || inner.is<Dot>() || inner.is<Let>();
    }
    found |= fetches && is_pure;
  });
  return found;
}

// A product reads the ring's slots.
bool is_operand(const Role& role, const NestRing& ring) {
  bool found = false;
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* d = op.get<Dot>();
    if (!d) return;
    for (const std::string& part : ring.parts) found |= d->a.str() == part || d->b.str() == part;
  });
  return found;
}

// Slots that keep the copies of a ring ahead of a loop with register work: as many as cover the
// time of a copy with products. 0 for rings of other loops.
int64_t slots_ahead(const Role& role, const NestRing& ring,
                    const std::map<std::string, int64_t, std::less<>>& depths,
                    const target::Target& target) {
  const auto products_per_clock = static_cast<int64_t>(target.costs.products_per_cycle);
  const auto tiles = declared_tiles(role);
  int64_t clocks = 0;
  ir::for_each_op(role.body, [&](const Op& op) {
    const auto* loop = op.get<Loop>();
    if (!loop) return;
    bool fetches = false;
    int64_t work = 0;
    for (const Op& inner : loop->body) {
      if (const auto* f = inner.get<Fetch>()) fetches |= f->part.str() == ring.parts[0];
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

// The depth of what may be the first operand of a product: its columns, or its rows where it is
// stored as depth by rows.
std::map<std::string, int64_t, std::less<>> operand_depths(const Role& role,
                                                           const std::vector<NestRing>& rings) {
  std::map<std::string, int64_t, std::less<>> out;
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

struct StoreUse {
  Tile tile;
  ir::Name map;
  int count = 0;
  bool is_unrolled = false;
};

void find_stores(const ir::Block& block, bool is_unrolled,
                 const std::map<std::string, Tile, std::less<>>& tiles,
                 std::map<std::string, StoreUse>& out) {
  for (const Op& op : block) {
    if (const auto* s = op.get<Store>(); s && tiles.contains(s->tile.str())) {
      StoreUse& use = out[std::string(s->tile.str())];
      use.tile = tiles.find(s->tile.str())->second;
      use.map = s->map;
      use.is_unrolled |= is_unrolled;
      ++use.count;
    }
    if (const ir::Block* inner = block_of(op))
      find_stores(*inner, is_unrolled || op.is<Unroll>() || op.is<Loop>(), tiles, out);
  }
}

}  // namespace

std::optional<NestResources> choose_resources(const Kernel& kernel, const Role& role,
                                              const std::vector<NestRing>& rings, const Maps& maps,
                                              Names& taken, const target::Target& target,
                                              ResourceChoices& choices, ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  const target::Limits& limits = target.limits;
  const target::Tiles& choice = target.tiles;
  NestResources out;
  const int groups = static_cast<int>(role.count.value_or(1));

  // Stages: one per type of stored tile.
  std::map<std::string, StoreUse> stores;
  find_stores(role.body, false, declared_tiles(role), stores);
  std::vector<Stage> stages;
  std::vector<decision::Stages> stage_lines;  // of the stages
  estimate::SharedUse shared;
  shared.other_bytes = choice.barrier_bytes;
  for (const auto& [name, use] : stores) {
    const ir::TensorType& type = use.tile.type;
    const auto it =
        std::find_if(stages.begin(), stages.end(), [&](const Stage& s) { return s.type == type; });
    if (it != stages.end()) {
      out.stage_of.emplace(name, it->name);
      continue;
    }
    decision::Stages line{maps.find(use.map.str())->second.value.name(), {}, {}, {}};
    const auto* asked = choices.stages.asked(line.operand);
    line.buffers = asked ? asked->buffers.value_or(0) : use.is_unrolled ? 2 : 1;
    if (*line.buffers < 1 || *line.buffers > kMostStages)
      choices.stages.refuse(line.operand, fmt::format("a stage has 1 to {} buffers", kMostStages));
    Stage stage{
        fresh_name(name + "_stage", taken, pool), line.buffers, role.name, use.tile.type, {}};
    stage_lines.push_back(line);
    const int tile_bytes = panel_tile(stage.type, MapSwizzle::B128).bytes();
    shared.stages.push_back(
        {estimate::bytes_to_next_tile(tile_bytes, target.copies), *stage.buffers, groups, false});
    out.stage_of.emplace(name, stage.name);
    stages.push_back(std::move(stage));
  }

  const bool has_loop = std::any_of(rings.begin(), rings.end(), [](const NestRing& r) {
    return r.sequence.kind != RingSequence::Kind::Once;
  });
  // Groups that alternate tiles jump over each other's slots: with fewer slots than groups, a group
  // would wait two phases ahead, which a parity cannot tell from none.
  int64_t least_slots = 1;
  ir::for_each_op(role.body, [&](const Op& op) {
    if (const auto* each = op.get<Each>())
      least_slots = std::max(least_slots, each->alternate.value_or(1));
  });
  const int resident = static_cast<int>(kernel.resident.value_or(1));
  const int most_bytes = limits.shared_bytes(resident);
  std::vector<estimate::RingUse>& uses = shared.rings;
  std::vector<bool> is_decided;
  int64_t growing = 0;  // bytes of one more slot of all rings that have 0 so far
  for (const NestRing& ring : rings) {
    const bool is_once = ring.sequence.kind == RingSequence::Kind::Once;
    const std::optional<int64_t> chosen = ring.asked.slots;
    const int64_t fewest = is_once ? 1 : std::max<int64_t>(least_slots, 2);
    if (chosen && (*chosen < fewest || *chosen > choice.most_slots)) {
      decision::refuse(ir::make(ring.asked),
                       fmt::format("this ring has {} to {} slots", fewest, choice.most_slots),
                       context);
      return std::nullopt;
    }
    const int64_t bytes = slot_bytes(ring, target.copies);
    const bool is_small = bytes <= choice.small_slot_bytes;
    const bool grows = !chosen && !is_once && !is_small && is_in_product_loop(role, ring);
    const int64_t slots = chosen                ? *chosen
                          : is_small            ? is_once ? 2 : 4
                          : is_once && has_loop ? least_slots
                          : grows               ? 0
                                                : 2;
    uses.push_back({bytes, slots, ring.is_per_group ? groups : 1});
    is_decided.push_back(chosen.has_value());
    growing += grows ? uses.back().bytes_of_one_more() : 0;
  }
  // A staging buffer on a ring of one slot per group costs nothing. It is for one store of a tile:
  // a second one would have to wait until the first has been read.
  const bool is_stored_once = stores.size() == 1 && stores.begin()->second.count == 1;
  const auto* stage_asked =
      stage_lines.empty() ? nullptr : choices.stages.asked(stage_lines[0].operand);
  const bool is_ring_wanted = stage_asked
                                  ? static_cast<bool>(stage_asked->ring)
                                  : shared.bytes() + 2 * growing > most_bytes && is_stored_once;
  if (is_ring_wanted && is_stored_once) {
    for (size_t k = 0; k < rings.size(); ++k) {
      const NestRing& ring = rings[k];
      if (!ring.is_per_group || ring.parts.size() != 1 || uses[k].slots != 1) continue;
      if (!(ring.ops[0].type == stages[0].type) || *stages[0].buffers != 1) continue;
      if (stage_asked && stage_asked->ring != ring.operands[0]) continue;
      stages[0].ring = ring.name;
      stage_lines[0].ring = ring.operands[0];
      shared.stages[0].is_on_ring = true;
      break;
    }
  }
  if (stage_asked && stage_asked->ring && !stage_lines[0].ring)
    choices.stages.refuse(stage_lines[0].operand,
                          "a stage lies on a ring of one slot for each group, of the same type, if "
                          "a tile stores once");
  for (const decision::Stages& line : stage_lines) choices.stages.took(line);
  // A tile that is only taken to registers is soon free again: one slot is enough where products
  // would have less than three.
  for (size_t k = 0; k < rings.size() && shared.bytes() + 3 * growing > most_bytes; ++k) {
    if (least_slots > 1 || uses[k].slots != 2 || is_decided[k] ||
        uses[k].slot_bytes <= choice.small_slot_bytes || is_operand(role, rings[k]))
      continue;
    uses[k].slots = 1;
  }
  // One group alone cannot hide latency behind the work of others: more slots do.
  while (groups == 1 && growing == 0) {
    estimate::SharedUse more = shared;
    for (size_t k = 0; k < rings.size(); ++k) {
      const bool is_once = rings[k].sequence.kind == RingSequence::Kind::Once;
      int64_t& slots = more.rings[k].slots;
      if (slots >= 2 && slots < choice.slots_alone && !is_once && !is_decided[k]) ++slots;
    }
    if (more.bytes() == shared.bytes() || more.bytes() > most_bytes) break;
    shared = more;
  }
  if (growing > 0) {
    const int64_t count =
        std::clamp<int64_t>((most_bytes - shared.bytes()) / growing, 2, choice.most_slots);
    for (estimate::RingUse& ring : uses) ring.slots = ring.slots == 0 ? count : ring.slots;
  }
  const auto depths = operand_depths(role, rings);
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (size_t k = 0; k < rings.size(); ++k) {
      if (is_decided[k] || is_in_product_loop(role, rings[k]) ||
          shared.bytes() + uses[k].bytes_of_one_more() > most_bytes ||
          uses[k].slots >= slots_ahead(role, rings[k], depths, target))
        continue;
      ++uses[k].slots;
      has_grown = true;
    }
  }
  if (shared.bytes() > most_bytes) {
    context.sink
        .report(diag::Code::NotVerified, {},
                fmt::format("kernel `{}`: its tiles need {} bytes of shared memory; there are {}",
                            kernel.name.str(), shared.bytes(), most_bytes))
        .with_help("smaller tiles, or fewer slots (`ring OPERANDS slots N`)");
    return std::nullopt;
  }
  for (size_t k = 0; k < rings.size(); ++k) {
    out.slots.push_back(uses[k].slots);
    Ring ring{rings[k].name, uses[k].slots, {}, {}};
    if (rings[k].is_per_group) ring.per = role.name;
    for (const SlotTile& p : rings[k].ops) ring.body.push_back(ir::make(p));
    out.declarations.push_back(ir::make(std::move(ring)));
  }
  for (Stage& s : stages) out.declarations.push_back(ir::make(std::move(s)));

  // Registers (R6): groups first, in steps; then the loaders get what is left over.
  const bool is_dynamic = std::any_of(kernel.body.begin(), kernel.body.end(), [](const Op& op) {
    const auto* t = op.get<Tiles>();
    return t && t->source == TileSource::Dynamic;
  });
  const estimate::Roles roles{groups, !rings.empty(), is_dynamic || kernel.ctas() > 1, resident};
  const auto* asked = choices.registers.asked();
  const int64_t compute = estimate::compute_registers(roles, target);
  out.compute_registers = asked ? asked->compute.value_or(compute) : compute;
  const int64_t load = estimate::loader_registers(roles, out.compute_registers, target);
  out.loader_registers = asked ? asked->load.value_or(load) : load;
  for (const int64_t registers : {out.compute_registers, out.loader_registers}) {
    if (registers % limits.register_step != 0 || registers < limits.least_role_registers ||
        registers > choice.most_registers)
      choices.registers.refuse(
          fmt::format("registers of a thread are multiples of {} from {} to {}",
                      limits.register_step, limits.least_role_registers, choice.most_registers));
  }
  const int64_t needed =
      estimate::needed_registers(roles, out.compute_registers, out.loader_registers, limits);
  const int64_t pool_registers = estimate::pool_registers(roles, limits);
  if (needed > pool_registers)
    choices.registers.refuse(
        fmt::format("it needs {} registers; a CTA has {}", needed, pool_registers));
  choices.registers.took({out.compute_registers, out.loader_registers, {}});
  return out;
}

}  // namespace nautilus::matile

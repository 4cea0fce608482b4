// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/nest_resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/walk.h"
#include "matile/resources.h"

namespace nautilus::matile {
namespace {

using ir::Op;

constexpr int kMaxSlots = 12;        // of small tiles, whose time is that of memory
constexpr int64_t kMostStages = 4;   // buffers of a store
constexpr int kMostSlotsAlone = 4;   // of loops with other work, for one group
constexpr int kBarrierBytes = 1024;  // more than all barriers of a kernel need
constexpr int kTileAlignment = 1024;
constexpr int kSmallSlot = 2048;  // a ring of such slots may always have a few

int aligned(int bytes) { return (bytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment; }

int slot_bytes(const NestRing& ring) {
  int bytes = 0;
  for (const Part& p : ring.ops) bytes += aligned(panel_tile(p.type, p.swizzle).bytes());
  return bytes;
}

// A loop that fetches the ring and has nothing but products beside it.
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

// Slots that keep the copies of a ring ahead of a loop with register work: as many as its products
// take the time of a copy. 0 for rings of no such loop.
int64_t slots_ahead(const Role& role, const NestRing& ring,
                    const std::map<std::string, int64_t, std::less<>>& depths) {
  constexpr int64_t kCopyClocks = 2048;        // from a release to the data, with some reserve
  constexpr int64_t kProductsPerClock = 2048;  // of a multiprocessor
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
      clocks = std::max<int64_t>(work * role.count.value_or(1) / kProductsPerClock, 1);
  });
  return clocks == 0 ? 0
                     : std::min<int64_t>(kMostSlotsAlone, 1 + (kCopyClocks + clocks - 1) / clocks);
}

// Columns of what may be the first operand of a product.
std::map<std::string, int64_t, std::less<>> operand_depths(const Role& role,
                                                           const std::vector<NestRing>& rings) {
  std::map<std::string, int64_t, std::less<>> out;
  for (const auto& [name, tile] : declared_tiles(role)) {
    if (tile.type.dims.size() == 2) out.emplace(name, static_shape(tile.type)[1]);
  }
  for (const NestRing& ring : rings) {
    for (const Part& p : ring.ops)
      out.emplace(std::string(p.name.str()), static_shape(p.type).back());
  }
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
                                              Names& taken, ResourceChoices& choices,
                                              ir::PassContext& context) {
  expr::ExprPool& pool = context.pool;
  NestResources out;
  const int groups = static_cast<int>(role.count.value_or(1));

  // Stages: one per type of stored tile.
  std::map<std::string, StoreUse> stores;
  find_stores(role.body, false, declared_tiles(role), stores);
  std::vector<Stage> stages;
  std::vector<decision::Stages> stage_lines;  // of the stages
  int stage_bytes = 0;
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
    stage_bytes += groups * static_cast<int>(*stage.buffers) *
                   aligned(panel_tile(stage.type, MapSwizzle::B128).bytes());
    out.stage_of.emplace(name, stage.name);
    stages.push_back(std::move(stage));
  }

  const bool has_loop = std::any_of(rings.begin(), rings.end(), [](const NestRing& r) {
    return r.sequence.kind != RingSequence::Kind::Once;
  });
  // Groups that take turns at tiles step over each other's slots: with fewer slots than groups one
  // would wait two phases ahead, which a parity cannot tell from none.
  int64_t least_slots = 1;
  ir::for_each_op(role.body, [&](const Op& op) {
    if (const auto* each = op.get<Each>())
      least_slots = std::max(least_slots, each->alternate.value_or(1));
  });
  const int resident = static_cast<int>(kernel.resident.value_or(1));
  const int most_bytes = std::min(kMaxSharedBytes, kSharedBytes / resident - kSharedBytesKept);
  std::vector<int64_t> slots;
  std::vector<bool> is_decided;
  int fixed = kBarrierBytes;
  int growing = 0;
  for (const NestRing& ring : rings) {
    const bool is_once = ring.sequence.kind == RingSequence::Kind::Once;
    const std::optional<int64_t> chosen = ring.asked.slots;
    const int64_t fewest = is_once ? 1 : std::max<int64_t>(least_slots, 2);
    if (chosen && (*chosen < fewest || *chosen > kMaxSlots)) {
      decision::refuse(ir::make(ring.asked),
                       fmt::format("this ring has {} to {} slots", fewest, kMaxSlots), context);
      return std::nullopt;
    }
    const int bytes = slot_bytes(ring) * (ring.is_per_group ? groups : 1);
    const bool is_small = slot_bytes(ring) <= kSmallSlot;
    const bool grows = !chosen && !is_once && !is_small && is_in_product_loop(role, ring);
    slots.push_back(chosen                ? *chosen
                    : is_small            ? is_once ? 2 : 4
                    : is_once && has_loop ? least_slots
                    : grows               ? 0
                                          : 2);
    is_decided.push_back(chosen.has_value());
    fixed += static_cast<int>(slots.back()) * bytes;
    growing += grows ? bytes : 0;
  }
  // A stage that lies on a ring of one slot per group costs nothing. It is for one store of a tile:
  // a second one would have to wait until the first has been read.
  const bool is_stored_once = stores.size() == 1 && stores.begin()->second.count == 1;
  const auto* stage_asked =
      stage_lines.empty() ? nullptr : choices.stages.asked(stage_lines[0].operand);
  const bool is_ring_wanted =
      stage_asked ? static_cast<bool>(stage_asked->ring)
                  : fixed + stage_bytes + 2 * growing > most_bytes && is_stored_once;
  if (is_ring_wanted && is_stored_once) {
    for (size_t k = 0; k < rings.size(); ++k) {
      const NestRing& ring = rings[k];
      if (!ring.is_per_group || ring.parts.size() != 1 || slots[k] != 1) continue;
      if (!(ring.ops[0].type == stages[0].type) || *stages[0].buffers != 1) continue;
      if (stage_asked && stage_asked->ring != ring.operands[0]) continue;
      stages[0].ring = ring.name;
      stage_lines[0].ring = ring.operands[0];
      stage_bytes = 0;
      break;
    }
  }
  fixed += stage_bytes;
  if (stage_asked && stage_asked->ring && !stage_lines[0].ring)
    choices.stages.refuse(stage_lines[0].operand,
                          "a stage lies on a ring of one slot for each group, of the same type, if "
                          "a tile stores once");
  for (const decision::Stages& line : stage_lines) choices.stages.took(line);
  // What is only taken to registers is free again soon: one slot will do, where products would have
  // less than three.
  for (size_t k = 0; k < rings.size() && fixed + 3 * growing > most_bytes; ++k) {
    if (least_slots > 1 || slots[k] != 2 || is_decided[k] || slot_bytes(rings[k]) <= kSmallSlot ||
        is_operand(role, rings[k]))
      continue;
    slots[k] = 1;
    fixed -= slot_bytes(rings[k]) * (rings[k].is_per_group ? groups : 1);
  }
  // One group alone hides no latency behind the work of others: more slots do.
  while (groups == 1 && growing == 0) {
    int more = 0;
    bool is_open = false;
    for (size_t k = 0; k < rings.size(); ++k) {
      if (slots[k] < 2 || slots[k] >= kMostSlotsAlone) continue;
      if (rings[k].sequence.kind == RingSequence::Kind::Once || is_decided[k]) continue;
      is_open = true;
      more += slot_bytes(rings[k]) * (rings[k].is_per_group ? groups : 1);
    }
    if (!is_open || fixed + more > most_bytes) break;
    for (size_t k = 0; k < rings.size(); ++k) {
      const bool is_once = rings[k].sequence.kind == RingSequence::Kind::Once;
      if (slots[k] >= 2 && slots[k] < kMostSlotsAlone && !is_once && !is_decided[k]) ++slots[k];
    }
    fixed += more;
  }
  if (growing > 0) {
    const int count = std::clamp((most_bytes - fixed) / growing, 2, kMaxSlots);
    for (int64_t& s : slots) s = s == 0 ? count : s;
    fixed += count * growing;
  }
  const auto depths = operand_depths(role, rings);
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (size_t k = 0; k < rings.size(); ++k) {
      const int bytes = slot_bytes(rings[k]) * (rings[k].is_per_group ? groups : 1);
      if (is_decided[k] || is_in_product_loop(role, rings[k]) || fixed + bytes > most_bytes ||
          slots[k] >= slots_ahead(role, rings[k], depths))
        continue;
      ++slots[k];
      fixed += bytes;
      has_grown = true;
    }
  }
  if (fixed > most_bytes) {
    context.sink
        .report(diag::Code::NotVerified, {},
                fmt::format("kernel `{}`: its tiles need {} bytes of shared memory; there are {}",
                            kernel.name.str(), fixed, most_bytes))
        .with_help("smaller tiles, or fewer slots (`ring OPERANDS slots N`)");
    return std::nullopt;
  }
  out.slots = slots;
  for (size_t k = 0; k < rings.size(); ++k) {
    Ring ring{rings[k].name, slots[k], {}, {}};
    if (rings[k].is_per_group) ring.per = role.name;
    for (const Part& p : rings[k].ops) ring.body.push_back(ir::make(p));
    out.declarations.push_back(ir::make(std::move(ring)));
  }
  for (Stage& s : stages) out.declarations.push_back(ir::make(std::move(s)));

  // Registers (R6): groups first, in steps of 8; then the loaders get what is left over.
  const int threads = 128 * (groups + (rings.empty() ? 0 : 1));
  const int pool_registers = std::min(65536 / (resident * threads) / 8 * 8, 248) * threads;
  // Loaders that number their tiles themselves, or for a cluster, need more.
  const bool is_plain =
      kernel.ctas() == 1 && std::none_of(kernel.body.begin(), kernel.body.end(), [](const Op& op) {
        const auto* t = op.get<Tiles>();
        return t && t->source == TileSource::Dynamic;
      });
  const int64_t least = is_plain || groups > 2 ? 24 : 40;
  const int64_t compute =
      std::min<int64_t>(240, (pool_registers - 128 * least) / (128 * groups) / 8 * 8);
  const auto* asked = choices.registers.asked();
  out.compute_registers = asked ? asked->compute.value_or(compute) : compute;
  const int64_t left = (pool_registers - 128 * groups * out.compute_registers) / 128 / 8 * 8;
  const int64_t load = std::max(least, std::min<int64_t>(left, 40));
  out.loader_registers = asked ? asked->load.value_or(load) : load;
  for (const int64_t registers : {out.compute_registers, out.loader_registers}) {
    if (registers % 8 != 0 || registers < 24 || registers > 240)
      choices.registers.refuse("registers of a thread are multiples of 8 from 24 to 240");
  }
  const int64_t needed =
      128 * (groups * out.compute_registers + (rings.empty() ? 0 : out.loader_registers));
  if (needed > pool_registers)
    choices.registers.refuse(
        fmt::format("it needs {} registers; a CTA has {}", needed, pool_registers));
  choices.registers.took({out.compute_registers, out.loader_registers, {}});
  return out;
}

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/nest_resources.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimate/registers.h"
#include "ir/walk.h"
#include "matile/passes/roles/ring_use.h"
#include "matile/resources.h"

namespace nautilus::matile {
namespace {

using ir::Op;

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

class ResourceChooser {
 public:
  ResourceChooser(const NestUses& nest, ResourceChoices& choices, ir::PassContext& context)
      : kernel_(nest.kernel),
        role_(nest.role),
        rings_(nest.rings),
        maps_(nest.maps),
        target_(nest.target),
        choice_(target_.tiles),
        choices_(choices),
        context_(context),
        groups_(static_cast<int>(role_.count.value_or(1))),
        resident_(static_cast<int>(kernel_.resident.value_or(1))),
        most_bytes_(target_.limits.shared_bytes(resident_)) {
    shared_.other_bytes = choice_.barrier_bytes;
  }

  std::optional<NestResources> run(Names& taken) {
    find_stores(role_.body, false, declared_tiles(role_), stores_);
    make_stages(taken);
    find_least_slots();
    if (!begin_rings()) return std::nullopt;
    put_stage_on_ring();
    for (const decision::Stages& line : stage_lines_) choices_.stages.took(line);
    free_taken_rings();
    grow_alone();
    grow_products();
    grow_ahead();
    if (shared_.bytes() > most_bytes_) {
      refuse();
      return std::nullopt;
    }
    declare();
    choose_registers();
    return std::move(out_);
  }

 private:
  bool is_once(size_t ring) const { return rings_[ring].sequence.kind == RingSequence::Kind::Once; }

  // What is only taken to registers is free again soon, unless groups take turns at it.
  bool one_slot_will_do(size_t ring) const {
    return least_slots_ == 1 && !is_operand(role_, rings_[ring]);
  }

  // Stages: one per type of stored tile.
  void make_stages(Names& taken) {
    for (const auto& [name, use] : stores_) {
      const ir::TensorType& type = use.tile.type;
      const auto it = std::find_if(stages_.begin(), stages_.end(),
                                   [&](const Stage& s) { return s.type == type; });
      if (it != stages_.end()) {
        out_.stage_of.emplace(name, it->name);
        continue;
      }
      decision::Stages line{maps_.find(use.map.str())->second.value.name(), {}, {}, {}};
      const auto* asked = choices_.stages.asked(line.operand);
      line.buffers = asked ? asked->buffers.value_or(0) : use.is_unrolled ? 2 : 1;
      if (*line.buffers < 1 || *line.buffers > choice_.most_stages)
        choices_.stages.refuse(line.operand,
                               fmt::format("a stage has 1 to {} buffers", choice_.most_stages));
      Stage stage{fresh_name(name + "_stage", taken, context_.pool),
                  line.buffers,
                  role_.name,
                  use.tile.type,
                  {}};
      stage_lines_.push_back(line);
      const int tile_bytes = panel_tile(stage.type, MapSwizzle::B128).bytes();
      shared_.stages.push_back({estimate::bytes_to_next_tile(tile_bytes, target_.copies),
                                *stage.buffers, groups_, false});
      out_.stage_of.emplace(name, stage.name);
      stages_.push_back(std::move(stage));
    }
  }

  // Groups that take turns at tiles step over each other's slots: with fewer slots than groups one
  // would wait two phases ahead, which a parity cannot tell from none.
  void find_least_slots() {
    ir::for_each_op(role_.body, [&](const Op& op) {
      if (const auto* each = op.get<Each>())
        least_slots_ = std::max(least_slots_, each->alternate.value_or(1));
    });
  }

  // What each ring has at first; false if a line says what cannot be.
  bool begin_rings() {
    bool has_loop = false;
    for (size_t k = 0; k < rings_.size(); ++k) has_loop |= !is_once(k);
    for (size_t k = 0; k < rings_.size(); ++k) {
      const NestRing& ring = rings_[k];
      const std::optional<int64_t> chosen = ring.asked.slots;
      const int64_t fewest =
          is_once(k) || one_slot_will_do(k) ? 1 : std::max<int64_t>(least_slots_, 2);
      if (chosen && (*chosen < fewest || *chosen > choice_.most_slots)) {
        decision::refuse(ir::make(ring.asked),
                         fmt::format("this ring has {} to {} slots", fewest, choice_.most_slots),
                         context_);
        return false;
      }
      const int64_t bytes = slot_bytes(ring, target_.copies);
      const bool is_small = bytes <= choice_.small_slot_bytes;
      const bool grows = !chosen && !is_once(k) && !is_small && is_in_product_loop(role_, ring);
      const int64_t slots = chosen                   ? *chosen
                            : is_small               ? is_once(k) ? 2 : choice_.small_slots
                            : is_once(k) && has_loop ? least_slots_
                            : grows                  ? 0
                                                     : 2;
      shared_.rings.push_back({bytes, slots, ring.is_per_group ? groups_ : 1});
      is_decided_.push_back(chosen.has_value());
      growing_ += grows ? shared_.rings.back().bytes_of_one_more() : 0;
    }
    return true;
  }

  // A stage that lies on a ring of one slot per group costs nothing. It is for one store of a tile:
  // a second one would have to wait until the first has been read.
  void put_stage_on_ring() {
    const bool is_stored_once = stores_.size() == 1 && stores_.begin()->second.count == 1;
    const auto* asked =
        stage_lines_.empty() ? nullptr : choices_.stages.asked(stage_lines_[0].operand);
    const bool is_wanted = asked ? static_cast<bool>(asked->ring)
                                 : shared_.bytes() + 2 * growing_ > most_bytes_ && is_stored_once;
    for (size_t k = 0; is_wanted && is_stored_once && k < rings_.size(); ++k) {
      const NestRing& ring = rings_[k];
      if (!ring.is_per_group || ring.slot_tiles.size() != 1 || shared_.rings[k].slots != 1)
        continue;
      if (!(ring.ops[0].type == stages_[0].type) || *stages_[0].buffers != 1) continue;
      if (asked && asked->ring != ring.operands[0]) continue;
      stages_[0].ring = ring.name;
      stage_lines_[0].ring = ring.operands[0];
      shared_.stages[0].is_on_ring = true;
      break;
    }
    if (asked && asked->ring && !stage_lines_[0].ring)
      choices_.stages.refuse(stage_lines_[0].operand,
                             "a stage lies on a ring of one slot for each group, of the same type, "
                             "if a tile stores once");
  }

  // One slot where that will do and products would have less than the target's `product_slots`.
  void free_taken_rings() {
    for (size_t k = 0;
         k < rings_.size() && shared_.bytes() + choice_.product_slots * growing_ > most_bytes_;
         ++k) {
      estimate::RingUse& use = shared_.rings[k];
      if (use.slots != 2 || is_decided_[k] || use.slot_bytes <= choice_.small_slot_bytes ||
          !one_slot_will_do(k))
        continue;
      use.slots = 1;
    }
  }

  // One group alone hides no latency behind the work of others: more slots do.
  void grow_alone() {
    while (groups_ == 1 && growing_ == 0) {
      estimate::SharedUse more = shared_;
      for (size_t k = 0; k < rings_.size(); ++k) {
        int64_t& slots = more.rings[k].slots;
        if (slots >= 2 && slots < choice_.slots_alone && !is_once(k) && !is_decided_[k]) ++slots;
      }
      if (more.bytes() == shared_.bytes() || more.bytes() > most_bytes_) break;
      shared_ = more;
    }
  }

  // Rings of loops that do nothing but products have all that is left.
  void grow_products() {
    if (growing_ == 0) return;
    const int64_t count =
        std::clamp<int64_t>((most_bytes_ - shared_.bytes()) / growing_, 2, choice_.most_slots);
    for (estimate::RingUse& ring : shared_.rings) ring.slots = ring.slots == 0 ? count : ring.slots;
  }

  // Copies stay ahead of loops with register work.
  void grow_ahead() {
    const auto depths = operand_depths(role_, rings_);
    for (bool has_grown = true; has_grown;) {
      has_grown = false;
      for (size_t k = 0; k < rings_.size(); ++k) {
        estimate::RingUse& use = shared_.rings[k];
        if (is_decided_[k] || is_in_product_loop(role_, rings_[k]) ||
            shared_.bytes() + use.bytes_of_one_more() > most_bytes_ ||
            use.slots >= slots_ahead(role_, rings_[k], depths, target_))
          continue;
        ++use.slots;
        has_grown = true;
      }
    }
  }

  void refuse() {
    context_.sink
        .report(diag::Code::NotVerified, {},
                fmt::format("kernel `{}`: its tiles need {} bytes of shared memory; there are {}",
                            kernel_.name.str(), shared_.bytes(), most_bytes_))
        .with_help("smaller tiles, or fewer slots (`ring OPERANDS slots N`)");
  }

  void declare() {
    for (size_t k = 0; k < rings_.size(); ++k) {
      out_.slots.push_back(shared_.rings[k].slots);
      Ring ring{rings_[k].name, shared_.rings[k].slots, {}, {}};
      if (rings_[k].is_per_group) ring.per = role_.name;
      for (const SlotTile& p : rings_[k].ops) ring.body.push_back(ir::make(p));
      out_.declarations.push_back(ir::make(std::move(ring)));
    }
    for (Stage& s : stages_) out_.declarations.push_back(ir::make(std::move(s)));
  }

  // Registers (R6): groups first, in steps; then the loaders get what is left over.
  void choose_registers() {
    const target::Limits& limits = target_.limits;
    const bool is_dynamic = std::any_of(kernel_.body.begin(), kernel_.body.end(), [](const Op& op) {
      const auto* t = op.get<Tiles>();
      return t && t->source == TileSource::Dynamic;
    });
    const estimate::Roles roles{groups_, !rings_.empty(), is_dynamic || kernel_.ctas() > 1,
                                resident_};
    const auto* asked = choices_.registers.asked();
    const int64_t compute = estimate::compute_registers(roles, target_);
    out_.compute_registers = asked ? asked->compute.value_or(compute) : compute;
    const int64_t load = estimate::loader_registers(roles, out_.compute_registers, target_);
    out_.loader_registers = asked ? asked->load.value_or(load) : load;
    for (const int64_t registers : {out_.compute_registers, out_.loader_registers}) {
      if (registers % limits.register_step != 0 || registers < limits.least_role_registers ||
          registers > choice_.most_registers)
        choices_.registers.refuse(
            fmt::format("registers of a thread are multiples of {} from {} to {}",
                        limits.register_step, limits.least_role_registers, choice_.most_registers));
    }
    const int64_t needed =
        estimate::needed_registers(roles, out_.compute_registers, out_.loader_registers, limits);
    const int64_t pool_registers = estimate::pool_registers(roles, limits);
    if (needed > pool_registers)
      choices_.registers.refuse(
          fmt::format("it needs {} registers; a CTA has {}", needed, pool_registers));
    // Threads that start with enough keep what they have: there is nothing to say, and a line that
    // repeats the rule's numbers says nothing.
    const int64_t at_launch = pool_registers / roles.threads(limits);
    const bool moves = std::max(compute, out_.compute_registers) > at_launch;
    if (moves || !roles.has_loaders)
      choices_.registers.took({out_.compute_registers, out_.loader_registers, {}});
    else if (asked && (out_.compute_registers != compute || out_.loader_registers != load))
      choices_.registers.refuse(fmt::format(
          "each of its {} threads starts with {} registers: none pass from one role to another",
          roles.threads(limits), at_launch));
    else if (asked)
      choices_.registers.drop();
  }

  const Kernel& kernel_;
  const Role& role_;
  const std::vector<NestRing>& rings_;
  const Maps& maps_;
  const target::Target& target_;
  const target::Tiles& choice_;
  ResourceChoices& choices_;
  ir::PassContext& context_;
  int groups_;
  int resident_;  // CTAs of a multiprocessor
  int most_bytes_;
  std::map<std::string, StoreUse> stores_;
  std::vector<Stage> stages_;
  std::vector<decision::Stages> stage_lines_;  // of the stages
  estimate::SharedUse shared_;
  std::vector<bool> is_decided_;  // by rings: a line says how many slots
  int64_t least_slots_ = 1;
  int64_t growing_ = 0;  // bytes of one more slot of all rings that have 0 so far
  NestResources out_;
};

}  // namespace

std::optional<NestResources> choose_resources(const NestUses& nest, Names& taken,
                                              ResourceChoices& choices, ir::PassContext& context) {
  return ResourceChooser(nest, choices, context).run(taken);
}

}  // namespace nautilus::matile

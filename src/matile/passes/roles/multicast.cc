// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/roles/multicast.h"

#include <algorithm>

#include "expr/walk.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/resources.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using expr::Expr;
using ir::Op;

using AxisCounts = std::map<std::string, size_t, std::less<>>;

class Multicaster {
 public:
  // `axes`: how many each map has.
  Multicaster(const Kernel& kernel, const AxisCounts& axes) : kernel_(kernel), axes_(axes) {
    for (const Op& op : kernel.body) {
      const auto* ring = op.get<Ring>();
      if (!ring || ring->per) continue;
      for (const Op& p : ring->body)
        slot_tiles_.emplace(p.as<SlotTile>().name.str(), p.as<SlotTile>());
    }
  }

  // Maps that only copies of shared places use, and what a box of theirs becomes.
  std::map<std::string, Share> find() {
    for (const Op& op : kernel_.body) {
      const auto* role = op.get<Role>();
      if (!role) continue;
      differs_ = {std::string(kernel_.rank.str())};
      collect(role->body, false);
    }
    for (const std::string& map : own_) shared_.erase(map);
    return shared_;
  }

  static Kernel changed(const Kernel& kernel, const std::map<std::string, Share>& maps) {
    Kernel out = kernel;
    out.body = map_blocks(kernel.body, [&](ir::Block block) {
      for (Op& op : block) {
        const auto* copy = op.get<Copy>();
        if (!copy || !maps.contains(std::string(copy->map.str()))) continue;
        Copy c = *copy;
        c.reach = Reach::Multicast;
        op = ir::make(std::move(c), op.span());
      }
      return block;
    });
    return out;
  }

 private:
  bool depends_on_rank(Expr e) const {
    const auto vars = expr::free_vars(e);
    return std::any_of(vars.begin(), vars.end(),
                       [&](Expr v) { return differs_.contains(v.name().str()); });
  }

  // `is_apart`: the CTAs may come here a different number of times.
  void collect(const ir::Block& block, bool is_apart) {
    const Names before = differs_;
    for (const Op& op : block) {
      if (const auto* let = op.get<Let>()) {
        if (depends_on_rank(let->value)) differs_.emplace(let->name.str());
      } else if (const auto* copy = op.get<Copy>()) {
        add(*copy, is_apart);
      } else if (const auto* store = op.get<Store>()) {
        own_.emplace(store->map.str());
      }
      const ir::Block* inner = block_of(op);
      if (!inner) continue;
      bool differs = is_apart;
      if (const auto* loop = op.get<Loop>())
        differs |= depends_on_rank(loop->from) || depends_on_rank(loop->to);
      if (const auto* branch = op.get<If>()) differs |= depends_on_rank(branch->condition);
      collect(*inner, differs);
    }
    differs_ = before;
  }

  void add(const Copy& copy, bool is_apart) {
    const std::string map(copy.map.str());
    const auto slot_tile = slot_tiles_.find(copy.slot_tile.str());
    bool is_own = is_apart || copy.panel || slot_tile == slot_tiles_.end();
    for (Expr at : copy.at) is_own |= depends_on_rank(at);
    if (!is_own) {
      const SlotTileInfo info{&slot_tile->second,
                              panel_tile(slot_tile->second.type, slot_tile->second.swizzle), 0};
      const auto share = share_of(info, kernel_.ctas());
      // A row vector has one axis, and no second one to divide into shares.
      const auto axes = axes_.find(map);
      is_own = !share || axes == axes_.end() || axes->second <= share->axis;
      if (!is_own) shared_.emplace(map, *share);
    }
    if (is_own) own_.emplace(map);
  }

  const Kernel& kernel_;
  const AxisCounts& axes_;
  std::map<std::string, SlotTile, std::less<>> slot_tiles_;
  Names differs_;
  Names own_;
  std::map<std::string, Share> shared_;
};

}  // namespace

std::optional<ir::Program> multicast(const ir::Program& program, ir::PassContext& context) {
  ir::Program out = program;
  AxisCounts axes;
  for (const Op& op : out.body)
    // Shares of a box are counted in elements, not in steps.
    if (const auto* map = op.get<Map>(); map && !map->step)
      axes.emplace(map->name.str(), map->box.size());
  std::map<std::string, Share> maps;
  for (Op& op : out.body) {
    const auto* kernel = op.get<Kernel>();
    if (!kernel || kernel->form != KernelForm::Final || kernel->ctas() < 2 || !kernel->rank)
      continue;
    const auto found = Multicaster(*kernel, axes).find();
    maps.insert(found.begin(), found.end());
    op = ir::make(Multicaster::changed(*kernel, found), op.span());
  }
  for (Op& op : out.body) {
    const auto* map = op.get<Map>();
    const auto it = map ? maps.find(std::string(map->name.str())) : maps.end();
    if (it == maps.end()) continue;
    Map m = *map;
    m.box[it->second.axis] = context.pool.integer(it->second.extent);
    op = ir::make(std::move(m), op.span());
  }
  return out;
}

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/registers/advance_takes.h"

#include <algorithm>
#include <utility>

#include "decision/choice.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/resources.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using ir::Op;

class Advancer {
 public:
  Advancer(const Kernel& kernel, const Role& role, int64_t beside)
      : role_(role),
        beside_(beside),
        tiles_(declared_tiles(role)),
        of_products_(product_tiles(role, role.body)) {
    for (const Op& op : kernel.body) {
      const auto* ring = op.get<Ring>();
      if (!ring) continue;
      for (const Op& p : ring->body) ring_of_.emplace(p.as<SlotTile>().name.str(), ring->name);
    }
  }

  // Whether the registers suffice for tiles that are held longer.
  bool has_room(const ir::Block& block) const {
    return role_.regs && held_in(block) + beside_ <= *role_.regs;
  }

  ir::Block run(ir::Block block) const {
    for (size_t k = 1; k < block.size(); ++k) {
      const auto* take = block[k].get<Take>();
      if (!take || of_products_.contains(take->tile.str())) continue;
      for (size_t at = k; at > 0 && may_pass(*take, block[at - 1]); --at)
        std::swap(block[at], block[at - 1]);
    }
    return block;
  }

 private:
  // Registers of the tiles of two axes that a block mentions, and of products in flight.
  int64_t held_in(const ir::Block& block) const {
    const Touched touched = touched_by(block);
    int64_t held = 0;
    for (const auto& [name, tile] : tiles_) {
      const bool is_there = touched.mentions(name) || of_products_.contains(name);
      if (tile.type.dims.size() == 2 && is_there) held += registers_of(tile);
    }
    return held;
  }

  bool may_pass(const Take& take, const Op& op) const {
    if (op.is<Wait>()) return true;
    const auto* release = op.get<Release>();
    const auto ring = ring_of_.find(take.slot_tile.str());
    return release && ring != ring_of_.end() && release->ring != ring->second;
  }

  const Role& role_;
  int64_t beside_;  // registers of a thread that its tiles leave
  std::map<std::string, ir::Name, std::less<>> ring_of_;
  std::map<std::string, Tile, std::less<>> tiles_;
  std::map<std::string, const Tile*, std::less<>> of_products_;
};

}  // namespace

std::optional<ir::Program> advance_takes(const ir::Program& program, ir::PassContext& context) {
  using decision::Moment;
  decision::Choice<decision::Takes> choice(context);
  const int64_t beside = ir::target_of(program).tiles.spare.taken;
  return map_kernels(
      program, KernelForm::Final, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel out = kernel;
        choice.begin(out.body);
        for (Op& op : out.body) {
          const auto* role = op.get<Role>();
          if (!role || role->unit != RoleUnit::Groups) continue;
          const Advancer advancer(kernel, *role, beside);
          Role changed = *role;
          changed.body = map_blocks(role->body, [&](const ir::Block& block) {
            ir::Block early = advancer.run(block);
            if (early == block || !advancer.has_room(block)) return block;
            const bool is_early = !choice.asked() || choice.asked()->moment == Moment::Early;
            choice.took({is_early ? Moment::Early : Moment::Late, {}});
            return is_early ? early : block;
          });
          op = ir::make(std::move(changed), op.span());
        }
        if (!choice.end("no tile of this kernel can be taken earlier, with the registers it has"))
          return std::nullopt;
        return out;
      });
}

}  // namespace nautilus::matile

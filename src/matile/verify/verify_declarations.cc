// SPDX-License-Identifier: Apache-2.0
// The declarations of a kernel: names, shapes and counts, and the roles and rings they refer to.
#include <fmt/format.h>

#include "ir/target_of.h"
#include "layout/fragments.h"
#include "matile/verify/verify_role.h"

namespace nautilus::matile {
namespace {

using expr::DType;
using ir::Op;

class DeclarationRules {
 public:
  explicit DeclarationRules(KernelScope& scope) : scope_(scope), v_(scope.verifier) {}

  void declaration(const Op& op) {
    switch (kind(op)) {
      case Kind::Tiles:
        return tiles(op.as<Tiles>());
      case Kind::Decisions:
        return;
      case Kind::LayoutLines:
        return v_.fail("a `layout` stands before `points`");
      case Kind::Ring:
        return ring(op.as<Ring>());
      case Kind::Cta:
        scope_.declare(op.as<Cta>().index);
        scope_.declare(op.as<Cta>().count);
        v_.declare_local(op.as<Cta>().index, DType::I64);
        v_.declare_local(op.as<Cta>().count, DType::I64);
        return;
      case Kind::Turn:
        scope_.declare(op.as<Turn>().name);
        return;
      case Kind::Stage:
        return stage(op.as<Stage>());
      case Kind::Role:
        return role(op.as<Role>());
      default:
        v_.fail(fmt::format("`{}` does not stand directly in a kernel", op.info().mnemonic()));
    }
  }

 private:
  void tiles(const Tiles& t) {
    scope_.declare(t.name);
    v_.check_closed(t.count, DType::I64, "the number of tiles");
    if ((t.source == TileSource::Dynamic) != static_cast<bool>(t.counter))
      v_.fail("dynamic tiles, and only these, have a counter");
    if (t.counter) {
      const ir::TensorType* type = v_.tensor(t.counter);
      if (!type || type->dtype != DType::I32 || !scope_.is_scratch(t.counter))
        v_.fail("the counter is a scratch tensor of i32");
    }
  }

  void ring(const Ring& ring) {
    scope_.declare(ring.name);
    if (ring.slots.value_or(0) < 1 || *ring.slots > 64) v_.fail("a ring has 1 to 64 slots");
    if (ring.body.empty()) v_.fail("a ring's slot has at least one slot tile");
    for (const Op& op : ring.body) {
      v_.set_op(op);
      if (const auto* p = op.get<SlotTile>())
        slot_tile(*p);
      else
        v_.fail("a ring consists of slot tiles");
    }
  }

  void stage(const Stage& stage) {
    scope_.declare(stage.name);
    const auto shape = static_shape(stage.type);
    if (shape.size() != 2 || shape[0] != 64 || shape[1] % 64 != 0 || shape[1] == 0 ||
        !is_half(stage.type.dtype))
      v_.fail("a stage holds 64 rows of a multiple of 64 columns of 16-bit floats");
    if (stage.buffers.value_or(0) < 1 || *stage.buffers > 64)
      v_.fail("a stage has 1 to 64 buffers");
    if (stage.ring && stage.buffers.value_or(0) != 1)
      v_.fail("a stage on a ring has one buffer, the slot");
  }

  void role(const Role& role) {
    const target::Limits& limits = ir::target_of(scope_.program).limits;
    scope_.declare(role.name);
    const int64_t count = role.count.value_or(-1);
    if (role.unit == RoleUnit::Warp && (count < 0 || count > 3))
      v_.fail("a loading role is warp 0 to 3");
    if (role.unit == RoleUnit::Groups && (count < 1 || count > limits.role_groups))
      v_.fail(fmt::format("a role has 1 to {} warp groups", limits.role_groups));
    if (role.unit == RoleUnit::Groups && count > 1 && !role.index)
      v_.fail("several groups are told apart by an index");
    const int64_t regs = role.regs.value_or(0);
    if (regs % limits.register_step != 0 || regs < limits.least_role_registers ||
        regs > limits.most_role_registers)
      v_.fail(fmt::format("registers are a multiple of {} from {} to {}, not {}",
                          limits.register_step, limits.least_role_registers,
                          limits.most_role_registers, regs));
  }

  void slot_tile(const SlotTile& p) {
    scope_.declare(p.name);
    const auto shape = static_shape(p.type);
    // Elements of one row are contiguous, as in panels of 16 bytes.
    const bool is_row_piece = shape.size() == 2 && shape[0] == 1 && p.swizzle == MapSwizzle::None;
    if (shape.size() != 2 || (!is_row_piece && (shape[0] < 8 || shape[0] % 8 != 0)) ||
        shape[0] > 256 || shape[1] < 1 || shape[1] > 4096)
      return v_.fail("a slot tile has a multiple of 8 rows, up to 256, and constant extents");
    const layout::PanelTile tile = panel_tile(p.type, p.swizzle);
    if (tile.cols % tile.panel_cols() != 0)
      v_.fail(fmt::format("the columns of a slot tile are a multiple of its panels' {}",
                          tile.panel_cols()));
  }

  KernelScope& scope_;
  ir::Verifier& v_;
};

}  // namespace

bool KernelScope::declare(ir::Name name) {
  if (names.emplace(name.str()).second && !verifier.is_defined(name)) return true;
  verifier.fail(fmt::format("`{}` is defined twice", name.str()));
  return false;
}

bool KernelScope::is_scratch(ir::Name tensor) const {
  const auto it = tensors.find(tensor.str());
  return it != tensors.end() && it->second == TensorRole::Scratch;
}

void verify_declarations(const Kernel& kernel, KernelScope& scope) {
  DeclarationRules rules(scope);
  for (const Op& op : kernel.body) {
    scope.verifier.set_op(op);
    rules.declaration(op);
  }
}

void verify_references(const Kernel& k, const KernelScope& scope) {
  ir::Verifier& v = scope.verifier;
  const auto compute = [&](ir::Name name) {
    const RoleInfo* role = scope.resources.role(name);
    if (!role || !role->is_compute())
      v.fail(fmt::format("the kernel has no role `{}` of warp groups", name.str()));
  };
  std::set<int64_t> warps;
  for (const Op& op : k.body) {
    v.set_op(op);
    if (const auto* turn = op.get<Turn>()) compute(turn->role);
    if (const auto* ring = op.get<Ring>(); ring && ring->per) compute(ring->per);
    if (const auto* role = op.get<Role>(); role && role->unit == RoleUnit::Warp) {
      if (!warps.insert(*role->count).second)
        v.fail(fmt::format("warp {} has another role already", *role->count));
    }
    const auto* stage = op.get<Stage>();
    if (!stage) continue;
    compute(stage->role);
    if (!stage->ring) continue;
    const RingInfo* ring = scope.resources.ring(stage->ring);
    if (!ring || ring->op->per != stage->role || ring->slot_tiles.size() != 1 ||
        !(ring->slot_tiles[0].tile == panel_tile(stage->type, MapSwizzle::B128)))
      v.fail(
          fmt::format("a stage lies on a ring of its role with one slot tile of its shape; `{}` is "
                      "none",
                      stage->ring.str()));
  }
}

}  // namespace nautilus::matile

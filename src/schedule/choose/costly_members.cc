// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/costly_members.h"

#include <fmt/format.h>

#include <algorithm>

#include "algebra/op_slots.h"
#include "expr/walk.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

// What one element of a member takes.
struct ElementWork {
  double slots = 0;        // in a tile
  double slots_apart = 0;  // with a thread for each element, whose loads are in flight together
};

class Members {
 public:
  Members(const StatementList& list, const Kernel& kernel, const ir::UsualSizes& sizes,
          expr::ExprPool& pool)
      : list_(list),
        kernel_(kernel),
        fusion_(kernel.fusion),
        target_(*kernel.fusion.target),
        sizes_(sizes),
        pool_(pool) {}

  // Empty if tiles compute it in less time.
  std::string why_apart(const Member& m) const {
    const Statement& s = list_.statements[static_cast<size_t>(m.statement)];
    if (s.role != scalar::Role::Temp || !m.place.empty() || !is_of_elements(s) || !may_be_read(m))
      return "";
    const double count = count_of(m);
    const ElementWork work = work_of(m);
    const target::Costs& costs = target_.costs;
    const auto sms = static_cast<double>(target_.board.sms);
    const double lanes = sms * target_.limits.group_threads;
    const auto bytes = static_cast<double>(expr::bytes(m.dtype));
    const double computed = count * times(m);
    const double in_tiles = computed * work.slots / lanes;
    const double in_front =
        count * (work.slots_apart / lanes + 2 * bytes / costs.memory_bytes_per_cycle) +
        computed * (costs.take_slots / lanes + bytes / (sms * costs.copy_bytes_per_cycle)) +
        costs.next_kernel_cycles;
    if (in_front >= in_tiles) return "";
    return fmt::format("computed by tiles it is predicted to take {:.2g} times as long as in front",
                       in_tiles / in_front);
  }

 private:
  // Whether the kernel can have it from memory: operands of products come as they lie there.
  bool may_be_read(const Member& m) const {
    return std::ranges::all_of(fusion_.dots, [&](const Dot& d) {
      return std::ranges::all_of(d.a, [&](Expr factor) {
        const auto reads = expr::tensors_read(factor);
        return std::ranges::count(reads, m.target) == 0 ||
               (expr::is_half(m.dtype) && factor.op() == expr::Op::Cast && factor[0] == m.read);
      });
    });
  }

  // Whether it is made of inputs without reductions.
  bool is_of_elements(const Statement& s) const {
    return !s.is_opaque && !s.is_reduction() && std::ranges::all_of(s.reads_from, [&](int id) {
      return is_of_elements(list_.statements[static_cast<size_t>(id)]);
    });
  }

  double count_of(const Member& m) const {
    double n = 1;
    for (Expr a : m.axes) n *= sizes_.extent(fusion_.extents.at(a));
    return n;
  }

  // How often an element is computed: by how many tiles.
  double times(const Member& m) const {
    double n = 1;
    for (const auto& [axis, extent] : fusion_.extents) {
      if (m.has(axis) || fusion_.is_outer(axis)) continue;
      const double length = sizes_.extent(extent);
      if (!fusion_.is_tile_axis(axis)) n *= length;
      const TileConfig& tile = kernel_.sizes;
      const auto rows = static_cast<double>(tile.rows * tile.warp_groups);
      if (axis == fusion_.row) n *= std::max(length / std::max(rows, 1.0), 1.0);
    }
    return n;
  }

  ElementWork work_of(const Member& m) const {
    ElementWork out;
    expr::for_each(fusion_.inlined(pool_, m.value), [&](Expr e) {
      const double slots = algebra::op_slots(e.op(), target_.costs);
      out.slots_apart += slots;
      const bool is_single = e.op() == expr::Op::Read && !(is_box(e) && lies_like(e, m));
      out.slots += is_single ? target_.costs.load_slots : slots;
    });
    return out;
  }

  // Whether copies bring the elements: each index is an axis, and no other index has it.
  static bool is_box(Expr read) {
    return std::ranges::all_of(read.args(), [&](Expr index) {
      return index.op() == expr::Op::Var && std::ranges::count(read.args(), index) == 1;
    });
  }

  // Whether the member's last axis runs along memory, too. A box of another order is transposed on
  // its way to registers only if it has 16 bits.
  static bool lies_like(Expr read, const Member& m) {
    return read.args().size() < 2 || expr::is_half(read.dtype()) || m.axes.empty() ||
           read.args().back() == m.axes.back();
  }

  const StatementList& list_;
  const Kernel& kernel_;
  const Fusion& fusion_;
  const target::Target& target_;
  const ir::UsualSizes& sizes_;
  expr::ExprPool& pool_;
};

}  // namespace

std::vector<CostlyMember> costly_members(const StatementList& list,
                                         const std::vector<Kernel>& kernels,
                                         const ir::UsualSizes& sizes, expr::ExprPool& pool) {
  std::vector<CostlyMember> out;
  for (const Kernel& k : kernels) {
    if (k.stored.empty()) continue;
    const Members members(list, k, sizes, pool);
    for (const Member& m : k.fusion.members) {
      if (m.is_reduction()) continue;
      std::string why = members.why_apart(m);
      if (!why.empty()) out.push_back({k.fusion.seed, m.statement, std::move(why)});
    }
  }
  return out;
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
// Kernels that were chosen, as lines of a schedule.
#include "decision/lines.h"
#include "schedule/apply/apply.h"
#include "schedule/apply/kernel.h"
#include "schedule/text/schedule.h"
#include "target/target.h"

namespace nautilus::schedule {
namespace {

namespace dc = decision;

// Column axes with a tile size of their own.
std::vector<Expr> cut_axes(const Fusion& fusion) {
  std::vector<Expr> out;
  for (Expr a : fusion.axis_order) {
    if (a != fusion.row && a != fusion.stream && fusion.is_tile_axis(a) && !fusion.is_whole(a))
      out.push_back(a);
  }
  return out;
}

ir::Block members_of(const Kernel& k) {
  ir::Block out = {ir::make(dc::Rows{k.fusion.row.name(), {}}),
                   ir::make(dc::Stream{k.fusion.stream.name(), {}})};
  dc::Fuse fuse;
  dc::Roll roll;
  for (const Member& m : k.fusion.members) {
    if (m.statement == k.fusion.seed) continue;
    (m.is_rolled ? roll.statements : fuse.statements).push_back(m.target);
  }
  if (!fuse.statements.empty()) out.push_back(ir::make(fuse));
  if (!roll.statements.empty()) out.push_back(ir::make(roll));
  return out;
}

// Groups that alternate have no parts: parts of a tile are not alike.
ir::Block sizes_of(const Fusion& fusion, const TileConfig& s, bool is_split) {
  ir::Block out = {
      ir::make(dc::Tile{fusion.row.name(), s.rows * s.warp_groups, {}}),
      ir::make(dc::Tile{
          fusion.stream.name(), std::min(s.step, longest_step(fusion).value_or(s.step)), {}})};
  for (Expr a : cut_axes(fusion)) out.push_back(ir::make(dc::Tile{a.name(), s.column, {}}));
  if (s.warp_groups > 1)
    out.push_back(ir::make(dc::Groups{s.warp_groups, dc::GroupKind::Sharing, {}}));
  if (s.warp_groups == 1 && s.rows > fusion.target->matrix.rows)
    out.push_back(ir::make(is_split ? dc::Groups{1, dc::GroupKind::Sharing, {}}
                                    : dc::Groups{2, dc::GroupKind::Alternating, {}}));
  if (s.cluster > 1) out.push_back(ir::make(dc::Cluster{s.cluster, {}}));
  if (s.resident > 1) out.push_back(ir::make(dc::Resident{s.resident, {}}));
  complete(out, s.lines);
  return out;
}

}  // namespace

std::vector<KernelSchedule> to_schedule(const std::vector<Kernel>& kernels, By by) {
  std::vector<KernelSchedule> out;
  for (const Kernel& k : kernels) {
    KernelSchedule lines;
    for (const Member& m : k.fusion.members) {
      if (m.statement == k.fusion.seed) lines.name = m.target.str();
    }
    ir::Block first = members_of(k);
    for (ir::Op& op : sizes_of(k.fusion, k.sizes, k.split.is_on())) first.push_back(std::move(op));
    if (k.split.is_on()) {
      dc::Split split{.axis = k.fusion.stream.name()};
      if (k.split.parts != Split::kFill) split.parts = k.split.parts;
      if (k.split.combines_last) split.combine = dc::CombineKind::Last;
      first.push_back(ir::make(split));
    }
    lines.alternatives.push_back(std::move(first));
    for (const TileConfig& other : k.others)
      lines.alternatives.push_back(sizes_of(k.fusion, other, false));
    for (ir::Block& alternative : lines.alternatives) {
      for (ir::Op& op : alternative) {
        if (dc::topic(op.info()) == dc::Topic::Sizes) op = dc::with_by(op, by);
      }
    }
    out.push_back(std::move(lines));
  }
  return out;
}

}  // namespace nautilus::schedule

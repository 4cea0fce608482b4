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

// Column axes whose tiles have a size of their own.
std::vector<Expr> cut_axes(const Group& group) {
  std::vector<Expr> out;
  for (Expr a : group.axis_order) {
    if (a != group.row && a != group.stream && group.is_tile_axis(a) && !group.is_whole(a))
      out.push_back(a);
  }
  return out;
}

ir::Block members_of(const Kernel& k) {
  ir::Block out = {ir::make(dc::Rows{k.group.row.name(), {}}),
                   ir::make(dc::Stream{k.group.stream.name(), {}})};
  dc::Fuse fuse;
  dc::Roll roll;
  for (const Member& m : k.group.members) {
    if (m.statement == k.group.seed) continue;
    (m.is_rolled ? roll.statements : fuse.statements).push_back(m.target);
  }
  if (!fuse.statements.empty()) out.push_back(ir::make(fuse));
  if (!roll.statements.empty()) out.push_back(ir::make(roll));
  return out;
}

// Groups that alternate have no parts: parts of a tile are not alike.
ir::Block sizes_of(const Group& group, const Sizes& s, bool is_split) {
  ir::Block out = {ir::make(dc::Tile{group.row.name(), s.rows * s.groups, {}}),
                   ir::make(dc::Tile{group.stream.name(), s.step, {}})};
  for (Expr a : cut_axes(group)) out.push_back(ir::make(dc::Tile{a.name(), s.column, {}}));
  if (s.groups > 1) out.push_back(ir::make(dc::Groups{s.groups, dc::GroupWay::Sharing, {}}));
  if (s.groups == 1 && s.rows > group.target->matrix.rows)
    out.push_back(ir::make(is_split ? dc::Groups{1, dc::GroupWay::Sharing, {}}
                                    : dc::Groups{2, dc::GroupWay::Alternating, {}}));
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
    for (const Member& m : k.group.members) {
      if (m.statement == k.group.seed) lines.name = m.target.str();
    }
    ir::Block first = members_of(k);
    for (ir::Op& op : sizes_of(k.group, k.sizes, k.split.is_on())) first.push_back(std::move(op));
    if (k.split.is_on()) {
      dc::Split split{k.group.stream.name(), {}, {}, {}};
      if (k.split.parts != Split::kFill) split.parts = k.split.parts;
      if (k.split.combines_last) split.combine = dc::CombineWay::Last;
      first.push_back(ir::make(split));
    }
    lines.ways.push_back(std::move(first));
    for (const Sizes& other : k.others) lines.ways.push_back(sizes_of(k.group, other, false));
    for (ir::Block& way : lines.ways) {
      for (ir::Op& op : way) {
        if (dc::topic(op.info()) == dc::Topic::Sizes) op = dc::with_by(op, by);
      }
    }
    out.push_back(std::move(lines));
  }
  return out;
}

}  // namespace nautilus::schedule

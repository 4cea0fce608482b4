// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

StepRange NestBuilder::part_of(StepRange range) {
  const Expr one = pool_.integer(1);
  if (range.live.listed) {
    // A part may begin behind the end of a list.
    const Expr is_listed = pool_.binary(Op::Lt, tiling_.at(fusion_.stream).tile, range.live.end);
    const Expr full = pool_.binary(Op::And, range.live.full, is_listed);
    for (auto& [part, written] : range.instead)
      written = expr::substitute(pool_, written, {{range.live.full, full}});
    range.live.full = full;
  }
  const Expr begin = pool_.binary(Op::Mul, split_->part, split_->steps_per_part);
  const Expr end =
      pool_.binary(Op::Min, split_->steps, pool_.binary(Op::Add, begin, split_->steps_per_part));
  Expr first = begin;
  if (!range.first.is_int(0)) {
    first = pool_.binary(Op::Min, pool_.binary(Op::Max, range.first, begin),
                         pool_.binary(Op::Max, begin, pool_.binary(Op::Sub, end, one)));
  }
  const bool is_open = range.masks.empty() && range.live.conditions.empty();
  const Expr last = is_open ? end : pool_.binary(Op::Min, range.count, end);
  range.first = first;
  range.count = pool_.binary(Op::Max, pool_.binary(Op::Add, first, one), last);
  return range;
}

void NestBuilder::store_part(size_t k, ir::Block& out) {
  const Member& m = member(k);
  scalar::Buffer parts{{}, {m.dtype, {}}, scalar::Role::Temp};
  ir::Exprs indices;
  Expr condition;
  for (Expr a : m.axes) {
    const TileAxis& t = tiling_.at(a);
    parts.type.dims.push_back(t.extent);
    indices.push_back(t.position);
    if (t.in_range) condition = both(condition, t.in_range);
  }
  const auto place = static_cast<std::ptrdiff_t>(place_of_part(fusion_, m, *split_));
  parts.type.dims.insert(parts.type.dims.begin() + place, split_->split);
  indices.insert(indices.begin() + place, split_->part);
  parts.name = fresh_buffer(fmt::format("{}.parts", m.target.str()));
  condition = both(condition, is_writer(m));
  store(parts.name, indices, local_read(*local_[k], m.dtype), condition, tile_axes(m), out);
  part_values_.push_back({k, parts.name, {}});
  locals_.push_back(std::move(parts));
}

bool NestBuilder::is_before(size_t k) const {
  const size_t p = alias_[k];
  return places_[p] == Place::Before && member(p).is_reduction();
}

ir::Block NestBuilder::combined(std::vector<scalar::Buffer>& buffers) {
  std::vector<LateValue> late;
  for (PartValue& v : part_values_) {
    const Member& m = member(v.member);
    if (stored_.contains(m.statement)) {
      v.whole = m.target;
      continue;
    }
    v.whole = fresh_buffer(fmt::format("{}.all", m.target.str()));
    scalar::Buffer whole{v.whole, {m.dtype, {}}, scalar::Role::Temp};
    for (Expr a : m.axes) whole.type.dims.push_back(tiling_.at(a).extent);
    buffers.push_back(std::move(whole));
  }
  for (size_t k = 0; k < members().size(); ++k) {
    if (!stored_.contains(member(k).statement)) continue;
    if (is_before(k)) continue;
    if (alias_[k] != k) {
      late.push_back({k, member(alias_[k]).read});
    } else if (places_[k] != Place::Rolled) {
      late.push_back({k, member(k).value});
    }
  }
  return combine_parts(fusion_, part_values_, late, *split_, signs_, pool_);
}

void NestBuilder::after(size_t k, ir::Block& out) {
  const Member& m = member(k);
  const std::vector<Expr> axes = tile_axes(m);
  ir::Exprs indices;
  Expr condition;
  for (Expr a : m.axes) {
    const TileAxis& t = tiling_.at(a);
    indices.push_back(t.position);
    if (t.in_range) condition = both(condition, t.in_range);
  }
  condition = both(condition, is_writer(m));
  if (split_) condition = both(condition, pool_.binary(Op::Eq, split_->part, pool_.integer(0)));
  std::unordered_map<Expr, Expr> memo;
  store(m.target, indices, member_value(alias_[k], Phase::After, memo), condition, axes, out);
}

Expr NestBuilder::is_writer(const Member& m) {
  Expr condition;
  for (Expr a : tiling_.order()) {
    const TileAxis& t = tiling_.at(a);
    if ((t.kind == AxisKind::Cut || t.kind == AxisKind::Batch) && !m.has(a))
      condition = both(
          condition, pool_.binary(Op::Eq, t.kind == AxisKind::Cut ? t.tile : a, pool_.integer(0)));
  }
  return condition;
}

bool NestBuilder::runs_when_empty(Expr axis) const {
  if (tiling_.at(axis).extent.op() == Op::IntConst) return false;
  return std::any_of(members().begin(), members().end(), [&](const Member& m) {
    return stored_.contains(m.statement) && !m.has(axis);
  });
}

Expr NestBuilder::at_least_one(Expr axis, Expr count) {
  return runs_when_empty(axis) ? pool_.binary(Op::Max, count, pool_.integer(1)) : count;
}

void NestBuilder::store(ir::Name target, const ir::Exprs& indices, Expr value, Expr condition,
                        const std::vector<Expr>& axes, ir::Block& out) {
  ir::Op store = ir::make(scalar::Store{target, indices, value});
  For loop{lanes(axes), LoopKind::Map, {}};
  if (condition) {
    loop.body.push_back(ir::make(scalar::If{condition, {store}}));
  } else {
    loop.body.push_back(store);
  }
  out.push_back(ir::make(std::move(loop)));
}

}  // namespace nautilus::schedule

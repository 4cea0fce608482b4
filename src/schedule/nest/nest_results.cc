// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_results.h"

#include <fmt/format.h>

namespace nautilus::schedule {

using expr::Op;

void NestResults::store(ir::Block& out) {
  if (f_.split) {
    for (size_t k : f_.rolled) store_part(k, out);
  }
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (!f_.is_stored(k)) continue;
    if (!f_.split || is_before(k)) store_member(k, out);
  }
}

ir::Block NestResults::combined(std::vector<scalar::Buffer>& buffers) {
  std::vector<LateValue> late;
  for (PartValue& v : part_values_) {
    const Member& m = f_.member(v.member);
    if (f_.is_stored(v.member)) {
      v.whole = m.target;
      continue;
    }
    v.whole = f_.tiles.fresh_name(fmt::format("{}.all", m.target.str()));
    scalar::Buffer whole{v.whole, {m.dtype, {}}, scalar::Role::Temp};
    for (Expr a : m.axes) whole.type.dims.push_back(f_.tiling.at(a).extent);
    buffers.push_back(std::move(whole));
  }
  for (size_t k = 0; k < f_.members().size(); ++k) {
    if (!f_.is_stored(k)) continue;
    if (is_before(k)) continue;
    if (f_.placed[k].same_as != k) {
      late.push_back({k, f_.member(f_.placed[k].same_as).read});
    } else if (f_.placed[k].place != MemberPlace::Rolled) {
      late.push_back({k, f_.member(k).value});
    }
  }
  return combine_parts(f_.scope(), part_values_, late, *f_.split);
}

void NestResults::store_member(size_t k, ir::Block& out) {
  const Member& m = f_.member(k);
  const std::vector<Expr> axes = f_.tile_axes(m);
  ir::Exprs indices;
  Expr condition;
  for (Expr a : m.axes) {
    const TileAxis& t = f_.tiling.at(a);
    indices.push_back(t.position);
    if (t.in_range) condition = f_.both(condition, t.in_range);
  }
  if (!m.place.empty()) {
    indices.clear();
    for (Expr e : m.place) indices.push_back(translation_.translated(e, NestPhase::After));
  }
  if (m.in_place)
    condition = f_.both(condition, translation_.translated(m.in_place, NestPhase::After));
  condition = f_.both(condition, is_writer(m));
  if (f_.split)
    condition = f_.both(condition, f_.pool.binary(Op::Eq, f_.split->part, f_.pool.integer(0)));
  f_.tiles.emit_result(out, m.target, indices,
                       translation_.member_value(f_.placed[k].same_as, NestPhase::After), condition,
                       axes);
}

void NestResults::store_part(size_t k, ir::Block& out) {
  const Member& m = f_.member(k);
  scalar::Buffer parts{{}, {m.dtype, {}}, scalar::Role::Temp};
  ir::Exprs indices;
  Expr condition;
  for (Expr a : m.axes) {
    const TileAxis& t = f_.tiling.at(a);
    parts.type.dims.push_back(t.extent);
    indices.push_back(t.position);
    if (t.in_range) condition = f_.both(condition, t.in_range);
  }
  const auto place = static_cast<std::ptrdiff_t>(place_of_part(f_.fusion, m, *f_.split));
  parts.type.dims.insert(parts.type.dims.begin() + place, f_.split->split);
  indices.insert(indices.begin() + place, f_.split->part);
  parts.name = f_.tiles.fresh_name(fmt::format("{}.parts", m.target.str()));
  condition = f_.both(condition, is_writer(m));
  f_.tiles.emit_result(out, parts.name, indices, f_.tiles.read(*f_.placed[k].tile, m.dtype),
                       condition, f_.tile_axes(m));
  part_values_.push_back({k, parts.name, {}});
  f_.tiles.buffers().push_back(std::move(parts));
}

bool NestResults::is_before(size_t k) const {
  const size_t p = f_.placed[k].same_as;
  return f_.placed[p].place == MemberPlace::Before && f_.member(p).is_reduction();
}

Expr NestResults::is_writer(const Member& m) {
  Expr condition;
  for (Expr a : f_.tiling.order()) {
    const TileAxis& t = f_.tiling.at(a);
    if ((t.kind == AxisKind::Cut || t.kind == AxisKind::Batch) && !m.has(a))
      condition = f_.both(condition, f_.pool.binary(Op::Eq, t.kind == AxisKind::Cut ? t.tile : a,
                                                    f_.pool.integer(0)));
  }
  return condition;
}

}  // namespace nautilus::schedule

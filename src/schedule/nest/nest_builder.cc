// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "expr/bounds/affine.h"
#include "expr/scalar_ops.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using scalar::For;
using scalar::LoopKind;

BuiltKernel NestBuilder::run(const ir::Axes& once) {
  find_needed();
  for (Expr a : tiling_.order()) {
    if (tiling_.at(a).kind == AxisKind::Batch && runs_when_empty(a)) tiling_.guard(a, pool_);
  }
  for (size_t k = 0; k < members().size(); ++k) place(k);
  find_steps();
  if (range_.live.listed) tiling_.take_steps_from(fusion_.stream, range_.live.listed, pool_);
  choose_guards();
  if (split_ && tiling_.has_loop()) range_ = part_of(range_);
  ir::Block body;
  for (size_t k = 0; k < members().size(); ++k) before(k, body);
  loop(body);
  for (size_t k : rolled_) settle_references(k, body);
  for (size_t k = 0; k < members().size(); ++k) {
    if (places_[k] != Place::Behind) continue;
    tile(k, body, Phase::After);
    notes_.push_back(fmt::format("close {}: along {}, behind the loop", member(k).target.str(),
                                 member(k).inner[0].name().str()));
  }
  if (split_) {
    for (size_t k : rolled_) store_part(k, body);
  }
  for (size_t k = 0; k < members().size(); ++k) {
    if (!stored_.contains(member(k).statement)) continue;
    if (!split_ || is_before(k)) after(k, body);
  }
  if (tiling_.group_var()) {
    For groups{{{tiling_.group_var().name(), pool_.integer(sizes_.warp_groups)}},
               LoopKind::Group,
               std::move(body)};
    body.clear();
    body.push_back(ir::make(std::move(groups)));
  }
  For grid{once, LoopKind::Grid, std::move(body)};
  for (Expr a : tiling_.order()) {
    const TileAxis& t = tiling_.at(a);
    if (t.kind == AxisKind::Batch) grid.axes.push_back({a.name(), at_least_one(a, t.extent)});
  }
  for (const AxisKind kind : {AxisKind::Row, AxisKind::Cut}) {
    for (Expr a : tiling_.order()) {
      const TileAxis& t = tiling_.at(a);
      if (t.kind != kind) continue;
      const Expr count = tile_count(fusion_, t, pool_);
      grid.axes.push_back({t.tile.name(), kind == AxisKind::Cut ? at_least_one(a, count) : count});
    }
  }
  if (split_) grid.axes.push_back({split_->part.name(), split_->split});
  if (sizes_.cluster > 1) grid.cluster = sizes_.cluster;
  if (sizes_.resident > 1) grid.resident = sizes_.resident;
  if (split_ && split_->combines_last) grid.combine = scalar::Combine::Last;
  BuiltKernel out{{},
                  std::move(locals_),
                  std::move(range_.live.buffers),
                  std::move(range_.live.statements),
                  {ir::make(std::move(grid))},
                  {},
                  {std::move(decided_)},
                  std::move(refused_),
                  std::move(notes_)};
  if (split_) {
    for (ir::Op& op : combined(out.locals)) out.nests.push_back(std::move(op));
  } else {
    out.wholes.push_back({0, sizes_, tiling_.at(fusion_.row).tile, !once.empty()});
  }
  return out;
}

void NestBuilder::find_needed() {
  expr::Substitution same;
  for (size_t k = 0; k < members().size(); ++k) {
    Member& m = fusion_.members[k];
    m.value = expr::substitute(pool_, m.value, same);
    if (m.init) m.init = expr::substitute(pool_, m.init, same);
    alias_.push_back(k);
    for (size_t p = 0; p < k; ++p) {
      const Member& o = member(p);
      if (o.is_rolled == m.is_rolled && o.axes == m.axes && o.inner == m.inner &&
          o.dtype == m.dtype && (!m.is_reduction() || o.reducer == m.reducer) && o.init == m.init &&
          m.is_reduction() && fusion_.inlined(pool_, o.value) == fusion_.inlined(pool_, m.value)) {
        alias_.back() = alias_[p];
        same.emplace(m.read, member(alias_[p]).read);
        break;
      }
    }
  }
  needed_.assign(members().size(), false);
  for (size_t k = 0; k < members().size(); ++k) {
    if (stored_.contains(member(k).statement)) need(alias_[k]);
  }
}

void NestBuilder::need(size_t k) {
  if (needed_[k]) return;
  needed_[k] = true;
  auto visit = [&](Expr e) {
    if (const auto p = index_of(e)) need(*p);
  };
  expr::for_each(member(k).value, visit);
  if (member(k).init) expr::for_each(member(k).init, visit);
}

std::optional<size_t> NestBuilder::index_of(Expr read) const {
  if (read.op() != Op::Read) return std::nullopt;
  for (size_t k = 0; k < members().size(); ++k) {
    if (member(k).read == read) return alias_[k];
  }
  return std::nullopt;
}

void NestBuilder::place(size_t k) {
  const Member& m = member(k);
  places_.push_back(Place::Inline);
  local_.emplace_back();
  new_local_.emplace_back();
  moving_.emplace_back();
  recurrences_.emplace_back();
  kept_.emplace_back();
  if (!needed_[k]) return;
  const bool is_late = !m.is_reduction() && !m.has(fusion_.stream) && fusion_.depends_on_rolled(m);
  if (is_late || fusion_.tile_axes(m).empty()) return;
  if (m.is_rolled) {
    places_[k] = Place::Rolled;
    rolled_.push_back(k);
    const auto r = recurrence_of(fusion_, m, signs_, pool_);
    NAUT_CHECK(r, "`{}` was accepted and cannot be rolled: {}", m.target.str(),
               r.rejection().message);
    recurrences_[k] = *r;
  } else {
    places_[k] = m.is_closing ? Place::Behind : m.has(fusion_.stream) ? Place::Loop : Place::Before;
  }
  local_[k] = make_local(m.target.str(), m.dtype, tile_axes(m));
}

std::vector<Expr> NestBuilder::tile_axes(const Member& m) const {
  std::vector<Expr> axes = fusion_.tile_axes(m);
  std::stable_partition(axes.begin(), axes.end(), [&](Expr a) { return a == fusion_.row; });
  return axes;
}

ir::Name NestBuilder::fresh_buffer(std::string_view stem) { return pool_.name(names_.fresh(stem)); }

NestBuilder::Local NestBuilder::make_local(std::string_view stem, DType dtype,
                                           std::vector<Expr> axes) {
  scalar::Buffer b{fresh_buffer(stem), {dtype, {}}, scalar::Role::Local};
  for (Expr a : axes) b.type.dims.push_back(pool_.integer(lane_extent(a)));
  locals_.push_back(b);
  return {b.name, std::move(axes)};
}

int64_t NestBuilder::lane_extent(Expr axis) const {
  const TileAxis& t = tiling_.at(axis);
  return t.kind == AxisKind::Row ? sizes_.rows : t.size;
}

Expr NestBuilder::local_read(const Local& local, DType dtype) {
  return pool_.read(local.name, dtype, local.axes);
}

ir::Axes NestBuilder::lanes(const std::vector<Expr>& axes) {
  ir::Axes out;
  for (Expr a : axes) out.push_back({a.name(), pool_.integer(lane_extent(a))});
  return out;
}

Expr NestBuilder::range_of(Expr e) {
  Expr condition;
  if (fusion_.row_block > 0) {
    const Expr block = pool_.binary(Op::FloorDiv, fusion_.row, fusion_.block_rows);
    e = expr::substitute(pool_, e, {{block, pool_.integer(0)}});
  }
  for (Expr a : tiling_.order()) {
    const TileAxis& t = tiling_.at(a);
    if (t.in_range && expr::depends_on(e, a)) condition = both(condition, in_tensor(e, t));
  }
  return condition;
}

Expr NestBuilder::in_tensor(Expr e, const TileAxis& t) {
  const bool is_free = (t.kind == AxisKind::Row && fusion_.row_block == 0) ||
                       (t.kind == AxisKind::Cut && t.var != fusion_.stream);
  const auto type = e.op() == Op::Read ? types_.find(e.name().str()) : types_.end();
  if (!is_free || type == types_.end()) return t.in_range;
  Expr condition;
  for (size_t k = 0; k < e.args().size(); ++k) {
    if (!expr::depends_on(e[k], t.var)) continue;
    const auto p = expr::Poly::of(e[k]);
    const auto parts = p ? p->split(t.var) : std::nullopt;
    if (e[k] == t.var || condition || !parts || parts->first.constant() != 1) return t.in_range;
    condition = pool_.binary(Op::Lt, translated(e[k], Phase::Loop), type->second.dims[k]);
  }
  return condition ? condition : t.in_range;
}

Expr NestBuilder::translated(Expr e, Phase phase) {
  std::unordered_map<Expr, Expr> memo;
  return translated(e, phase, memo);
}

Expr NestBuilder::translated(Expr e, Phase phase, std::unordered_map<Expr, Expr>& memo) {
  if (const auto it = memo.find(e); it != memo.end()) return it->second;
  const Expr result = new_translation(e, phase, memo);
  memo.emplace(e, result);
  return result;
}

Expr NestBuilder::new_translation(Expr e, Phase phase, std::unordered_map<Expr, Expr>& memo) {
  if (const auto it = range_.instead.find(e); it != range_.instead.end())
    return instead_of(it->second, phase);
  switch (e.op()) {
    case Op::Var: {
      if (!fusion_.extents.contains(e)) return e;
      return tiling_.at(e).position;
    }
    case Op::Read: {
      if (const auto k = index_of(e)) return member_value(*k, phase, memo);
      const Expr condition = range_of(e);
      std::vector<Expr> indices;
      for (Expr i : e.args()) indices.push_back(translated(i, phase, memo));
      const Expr read = pool_.with_args(e, indices);
      return condition ? pool_.select(condition, read, pool_.constant(0, e.dtype())) : read;
    }
    default: {
      if (e.args().empty()) return e;
      // The number of a block of rows, and the place in it.
      const bool is_block = fusion_.row_block > 0 && e.args().size() == 2 && e[0] == fusion_.row &&
                            e[1] == fusion_.block_rows;
      if (is_block && e.op() == Op::FloorDiv) return tiling_.at(fusion_.row).tile;
      if (is_block && e.op() == Op::Mod) return fusion_.row;
      std::vector<Expr> args;
      for (Expr a : e.args()) args.push_back(translated(a, phase, memo));
      return pool_.with_args(e, args);
    }
  }
}

Expr NestBuilder::instead_of(Expr other, Phase phase) {
  const expr::Substitution others = std::exchange(range_.instead, {});
  const Expr result = translated(other, phase);
  range_.instead = others;
  return result;
}

Expr NestBuilder::member_value(size_t k, Phase phase, std::unordered_map<Expr, Expr>& memo) {
  const Member& m = member(k);
  if (places_[k] == Place::Inline) return translated(m.value, phase, memo);
  const bool is_new = phase == Phase::Loop && new_local_[k];
  return local_read(is_new ? *new_local_[k] : *local_[k], m.dtype);
}

void NestBuilder::emit_store(ir::Block& out, const Local& local, Expr value) {
  For loop{lanes(local.axes), LoopKind::Map, {}};
  loop.body.push_back(ir::make(scalar::Store{local.name, local.axes, value}));
  out.push_back(ir::make(std::move(loop)));
}

void NestBuilder::emit_reduction(ir::Block& out, const Local& local, Expr init, Expr axis,
                                 expr::Reducer reducer, Expr value) {
  For loop{lanes(local.axes), LoopKind::Map, {}};
  if (init) loop.body.push_back(ir::make(scalar::Init{local.name, local.axes, init}));
  if (value) {
    For reduce{lanes({axis}), LoopKind::Reduce, {}};
    reduce.body.push_back(ir::make(scalar::Update{local.name, local.axes, reducer, value}));
    loop.body.push_back(ir::make(std::move(reduce)));
  }
  out.push_back(ir::make(std::move(loop)));
}

}  // namespace nautilus::schedule

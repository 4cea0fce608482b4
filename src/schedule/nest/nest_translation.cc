// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_translation.h"

#include <utility>

#include "expr/bounds/affine.h"
#include "expr/rules/simplify.h"
#include "expr/walk.h"

namespace nautilus::schedule {

using expr::Op;

NestTranslation::NestTranslation(NestFrame& frame) : f_(frame) {
  for (const ir::Op& op : frame.program.body) {
    if (const auto* b = op.get<scalar::Buffer>()) types_.emplace(b->name.str(), b->type);
  }
}

Expr NestTranslation::translated(Expr e, NestPhase phase) {
  Memo memo;
  return translated(e, phase, memo);
}

Expr NestTranslation::member_value(size_t k, NestPhase phase) {
  Memo memo;
  return member_value(k, phase, memo);
}

Expr NestTranslation::translated(Expr e, NestPhase phase, Memo& memo) {
  if (const auto it = memo.find(e); it != memo.end()) return it->second;
  const Expr result = new_translation(e, phase, memo);
  memo.emplace(e, result);
  return result;
}

Expr NestTranslation::new_translation(Expr e, NestPhase phase, Memo& memo) {
  if (const auto it = f_.range.instead.find(e); it != f_.range.instead.end())
    return instead_of(it->second, phase);
  switch (e.op()) {
    case Op::Var: {
      if (!f_.fusion.extents.contains(e)) return e;
      return f_.tiling.at(e).position;
    }
    case Op::Read: {
      if (const auto k = f_.index_of(e)) return member_value(*k, phase, memo);
      const Expr condition = range_of(e);
      std::vector<Expr> indices;
      for (Expr i : e.args()) indices.push_back(translated(i, phase, memo));
      const Expr read = f_.pool.with_args(e, indices);
      return condition ? f_.pool.select(condition, read, f_.pool.constant(0, e.dtype())) : read;
    }
    default: {
      if (e.args().empty()) return e;
      // The number of a block of rows, and the place in it.
      const bool is_block = f_.fusion.row_block > 0 && e.args().size() == 2 &&
                            e[0] == f_.fusion.row && e[1] == f_.fusion.block_rows;
      if (is_block && e.op() == Op::FloorDiv) return f_.tiling.at(f_.fusion.row).tile;
      if (is_block && e.op() == Op::Mod) return f_.fusion.row;
      if (const Expr block = tile_block(e)) return block;
      std::vector<Expr> args;
      for (Expr a : e.args()) args.push_back(translated(a, phase, memo));
      return f_.pool.with_args(e, args);
    }
  }
}

Expr NestTranslation::tile_block(Expr e) {
  if (e.op() != Op::FloorDiv || e[1].op() != Op::IntConst || !f_.fusion.extents.contains(e[0]))
    return {};
  const TileAxis& t = f_.tiling.at(e[0]);
  const bool is_tiled = t.kind == AxisKind::Stream || t.kind == AxisKind::Cut;
  const bool has_tiles = is_tiled && t.tile && t.size > 0;
  if (!has_tiles || e[1].integer() % t.size != 0) return {};
  const Expr first = expr::substitute(f_.pool, t.position, {{t.var, f_.pool.integer(0)}});
  return expr::Simplifier(f_.pool).simplify(f_.pool.binary(Op::FloorDiv, first, e[1]));
}

Expr NestTranslation::member_value(size_t k, NestPhase phase, Memo& memo) {
  const Member& m = f_.member(k);
  if (f_.placed[k].place == MemberPlace::Inline) return translated(m.value, phase, memo);
  const bool is_new = phase == NestPhase::Loop && f_.placed[k].next;
  return f_.tiles.read(is_new ? *f_.placed[k].next : *f_.placed[k].tile, m.dtype);
}

Expr NestTranslation::instead_of(Expr other, NestPhase phase) {
  const expr::Substitution others = std::exchange(f_.range.instead, {});
  const Expr result = translated(other, phase);
  f_.range.instead = others;
  return result;
}

Expr NestTranslation::range_of(Expr e) {
  Expr condition;
  if (f_.fusion.row_block > 0) {
    const Expr block = f_.pool.binary(Op::FloorDiv, f_.fusion.row, f_.fusion.block_rows);
    e = expr::substitute(f_.pool, e, {{block, f_.pool.integer(0)}});
  }
  // Every tile of columns has an element that exists. A loop may have one step beyond its axis.
  expr::Substitution blocks;
  bool has_step = false;
  expr::for_each(e, [&](Expr x) {
    if (!tile_block(x)) return;
    blocks.emplace(x, f_.pool.integer(0));
    has_step |= x[0] == f_.fusion.stream;
  });
  if (has_step) condition = f_.both(condition, begins_inside(f_.tiling.at(f_.fusion.stream)));
  e = expr::substitute(f_.pool, e, blocks);
  for (Expr a : f_.tiling.order()) {
    const TileAxis& t = f_.tiling.at(a);
    if (t.in_range && expr::depends_on(e, a)) condition = f_.both(condition, in_tensor(e, t));
  }
  return condition;
}

Expr NestTranslation::begins_inside(const TileAxis& t) {
  if (!t.in_range) return {};
  const Expr first = expr::substitute(f_.pool, t.position, {{t.var, f_.pool.integer(0)}});
  return f_.pool.binary(Op::Lt, expr::Simplifier(f_.pool).simplify(first), t.extent);
}

Expr NestTranslation::in_tensor(Expr e, const TileAxis& t) {
  const bool is_free = (t.kind == AxisKind::Row && f_.fusion.row_block == 0) ||
                       (t.kind == AxisKind::Cut && t.var != f_.fusion.stream) ||
                       (t.kind == AxisKind::Whole && !f_.fusion.is_inner(t.var));
  const auto type = e.op() == Op::Read ? types_.find(e.name().str()) : types_.end();
  if (!is_free || type == types_.end()) return t.in_range;
  Expr condition;
  for (size_t k = 0; k < e.args().size(); ++k) {
    if (!expr::depends_on(e[k], t.var)) continue;
    const auto p = expr::Poly::of(e[k]);
    const auto parts = p ? p->split(t.var) : std::nullopt;
    const int64_t step = parts ? parts->first.constant().value_or(0) : 0;
    if (e[k] == t.var || condition || step < 1) return t.in_range;
    condition = f_.pool.binary(Op::Lt, translated(e[k], NestPhase::Loop), type->second.dims[k]);
  }
  return condition ? condition : t.in_range;
}

}  // namespace nautilus::schedule

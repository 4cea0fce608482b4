// SPDX-License-Identifier: Apache-2.0
// What a tile nest reads, and what that says about the order of its tiles.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "expr/print.h"
#include "ir/machine.h"
#include "ir/walk.h"
#include "lower/tiles/tile_lowering.h"
#include "vrtile/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;
using Kind = TileValue::Kind;

namespace {

Uses uses_of(const ir::Block& block, size_t from, ir::Name name) {
  Uses uses;
  uses.last = from;
  for (size_t k = from; k < block.size(); ++k) {
    bool here = false;
    ir::for_each_op({block[k]}, [&](const Op& op) {
      vrtile::for_each_use(op, [&](ir::Name n) { here |= n == name; });
      if (const auto* d = op.get<vrtile::Dot>()) {
        uses.is_operand |= d->a == name || d->b == name;
        uses.is_a |= d->a == name;
        uses.is_b |= d->b == name;
        uses.in_expressions |= d->acc == name;
      } else {
        vrtile::for_each_use(op, [&](ir::Name n) { uses.in_expressions |= n == name; });
      }
    });
    if (here) uses.last = k;
  }
  return uses;
}

}  // namespace

GridFacts NestLowering::grid_facts(const ir::Axes& axes, const ir::Block& body) const {
  GridFacts facts;
  facts.machine = ir::machine_name(program_, pool_);
  // Scalars written out, so that a bound that depends on an axis is seen to.
  expr::Substitution lets;
  ir::for_each_op(body, [&](const Op& op) {
    const auto* let = op.get<vrtile::Let>();
    if (let)
      lets.insert_or_assign(pool_.var(let->name, let->value.dtype()),
                            expr::substitute(pool_, let->value, lets));
  });
  const auto depends = [&](Expr e, const ir::Axis& a) {
    return expr::depends_on(expr::substitute(pool_, e, lets), pool_.index(a.name));
  };
  std::unordered_set<Expr> computed;
  for (const Op& op : program_.body) {
    if (const auto* s = op.get<ir::Size>()) computed.insert(pool_.index(s->name));
  }
  std::set<std::string> operands;
  std::set<std::string> looped;
  ir::for_each_op(body, [&](const Op& op) {
    if (const auto* d = op.get<vrtile::Dot>()) {
      operands.emplace(d->a.str());
      operands.emplace(d->b.str());
    }
    const auto* loop = op.get<vrtile::For>();
    if (!loop) return;
    for (const Op& inner : loop->body) {
      if (const auto* l = inner.get<vrtile::Load>()) looped.emplace(l->name.str());
    }
    for (size_t k = 0; k < axes.size(); ++k) {
      // Parts that a schedule made of a loop are alike.
      if (computed.contains(axes[k].extent)) continue;
      if (depends(loop->from, axes[k]) || depends(loop->to, axes[k]))
        facts.growing = static_cast<int>(k);
    }
  });
  // Which axes the tiles depend on that are read from memory step by step or by products.
  std::vector<std::set<size_t>> sets;
  std::set<std::string> counted;
  ir::for_each_op(body, [&](const Op& op) {
    const auto* l = op.get<vrtile::Load>();
    if (!l) return;
    const bool is_operand = operands.contains(std::string(l->name.str()));
    if (!is_operand && (l->axes.size() != 2 || !looped.contains(std::string(l->name.str()))))
      return;
    std::set<size_t> set;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (depends(l->value, axes[k])) set.insert(k);
    }
    sets.push_back(set);
    // Read again by all tiles along the growing axis.
    if (facts.growing < 0 || !is_operand || set.contains(static_cast<size_t>(facts.growing)) ||
        !looped.contains(std::string(l->name.str())) ||
        !counted.emplace(l->value.name().str()).second)
      return;
    const auto type = tensors_.find(l->value.name().str());
    if (type == tensors_.end()) return;
    Expr bytes = pool_.integer(expr::bytes(type->second.dtype));
    for (size_t d = 0; d < l->value.args().size(); ++d) {
      bool is_walked = true;
      for (const ir::Axis& a : axes) is_walked &= !depends(l->value[d], a);
      if (is_walked) bytes = pool_.binary(EK::Mul, type->second.dims[d], bytes);
    }
    facts.shared_bytes =
        facts.shared_bytes ? pool_.binary(EK::Add, facts.shared_bytes, bytes) : bytes;
  });
  if (facts.shared_bytes) facts.shared_bytes = expr::Simplifier(pool_).simplify(facts.shared_bytes);
  for (size_t k = 0; k < axes.size() && facts.growing >= 0; ++k) {
    const auto growing = static_cast<size_t>(facts.growing);
    const bool is_repeated = std::any_of(sets.begin(), sets.end(), [&](const auto& s) {
      return s.contains(growing) && !s.contains(k);
    });
    if (k != growing && is_repeated) facts.repeated = static_cast<int>(k);
  }
  for (size_t r = 0; r < axes.size() && facts.growing < 0; ++r) {
    for (size_t c = r + 1; c < axes.size(); ++c) {
      bool has_row = false;
      bool has_col = false;
      for (const auto& s : sets) {
        has_row |= s.contains(r) && !s.contains(c);
        has_col |= s.contains(c) && !s.contains(r);
      }
      if (!has_row || !has_col) continue;
      facts.rows = static_cast<int>(r);
      facts.cols = static_cast<int>(c);
    }
  }
  return facts;
}

bool NestLowering::load(const vrtile::Load& op, const ir::Block& ops, size_t k, ir::Block& out,
                        bool is_loop) {
  if (op.value.op() != EK::Read) return refuse("a load takes elements of a tensor");
  TileValue value;
  value.kind = Kind::Load;
  expr::Substitution axes;
  for (const ir::Axis& a : op.axes) {
    const ir::Name name = names_.make("x");
    axes.emplace(pool_.index(a.name), pool_.index(name));
    value.axes.push_back({name, a.extent});
  }
  value.value = tiles_.written(op.value, axes, why_);
  if (op.condition) value.condition = tiles_.written(op.condition, axes, why_);
  if (op.other) value.other = op.other;
  if (!value.value || (op.condition && !value.condition)) return false;
  const Uses uses = uses_of(ops, k + 1, op.name);
  if (uses.is_operand && !fetch(op, uses, value, out, is_loop)) return false;
  if (!uses.is_operand && is_box(value)) value.box_of = &ops;
  if (!uses.is_operand && is_row_piece(value)) value.row_piece_of = &ops;
  if (value.box_of && is_eager() && !take_box(op.name, value, uses.last, out)) return false;
  if (value.row_piece_of && is_eager() && runs_along_columns(op.name, ops))
    value.part = fetch_row_piece(op.name, value, uses.last, out);
  tiles_.define(op.name, std::move(value));
  return true;
}

bool NestLowering::fetch(const vrtile::Load& op, const Uses& uses, TileValue& value, ir::Block& out,
                         bool is_loop) {
  const auto type = tensors_.find(op.value.name().str());
  if (type == tensors_.end()) return refuse("a load takes elements of a tensor");
  if (op.other && !(op.other.is_const() && is_zero(op.other)))
    return refuse(fmt::format("`{}` is not 0 outside its tensor", op.name.str()));
  TileElements elements{&target_.copies, op.value.name(),
                        type->second,    {value.value.args().begin(), value.value.args().end()},
                        value.axes,      value.condition,
                        &divisors_};
  std::string no_box;
  const auto view = view_of(elements, pool_, &no_box);
  // A first operand may come from registers, where every element has an address of its own.
  if (uses.is_a && !uses.is_b && (!view || view->is_transposed)) return gather(op, value, out);
  if (!view) return refuse(no_box);
  value.is_transposed = view->is_transposed;
  if (view->is_transposed && uses.is_a)
    return refuse(fmt::format("`{}` is stored by columns, the first operand of a product by rows",
                              op.name.str()));
  // In a loop the groups read their rows of one tile; a tile that a group keeps is its own.
  Expr row = view->row_base;
  int rows = view->rows;
  if (is_loop && uses.is_a) join_groups(row, rows, value);
  const auto map = map_for(elements, *view, rows, view->cols);
  if (!map) return false;
  const bool is_needed_once =
      (is_loop && is_read_once(elements)) || is_piece_of_rows(elements, *view);
  promotes(map->op.name, is_needed_once);
  value.part = part_for(op.name, map->op, rows, view->cols, uses.last);
  const Expr col = view->col_base;
  out.push_back(ir::make(matile::Fetch{value.part, map->op.name, map->at(row, col, pool_)}));
  return true;
}

// Steps along an axis that begin at a tile's own place are the tile's own.
bool NestLowering::depends_on_tile(Expr e, Expr tile) const {
  if (expr::depends_on(e, tile)) return true;
  const auto vars = expr::free_vars(e);
  return std::any_of(vars.begin(), vars.end(), [&](Expr v) {
    const auto bounds = loop_bounds_.find(v);
    return bounds != loop_bounds_.end() && (expr::depends_on(bounds->second.first, tile) ||
                                            expr::depends_on(bounds->second.second, tile));
  });
}

// No two tiles need the same of it.
bool NestLowering::is_read_once(const TileElements& e) const {
  return std::all_of(used_axes_.begin(), used_axes_.end(), [&](const ir::Axis& a) {
    return a.extent.is_int(1) || std::any_of(e.indices.begin(), e.indices.end(), [&](Expr i) {
             return depends_on_tile(i, pool_.index(a.name));
           });
  });
}

// Narrower than what a miss would fetch, and not all of a row: what lies beside it is for later.
bool NestLowering::is_piece_of_rows(const TileElements& e, const TileView& view) const {
  return view.cols * expr::bytes(e.type.dtype) < target_.memory.promote_bytes &&
         !e.type.dims.back().is_int(view.cols);
}

void NestLowering::join_groups(Expr& row, int& rows, TileValue& value) {
  if (!own_group_ || !expr::depends_on(row, own_group_) || rows != group_rows() ||
      groups_ * rows > target_.copies.box_extent)
    return;
  const Expr first = simplifier_.simplify(
      expr::substitute(pool_, row, expr::Substitution{{own_group_, pool_.integer(0)}}));
  const auto difference = expr::difference(row, first);
  const Expr step = pool_.binary(EK::Mul, pool_.integer(rows), own_group_);
  if (!difference || !(*difference == *expr::Poly::of(step))) return;
  row = first;
  rows *= static_cast<int>(groups_);
  value.first_row = step;
}

bool NestLowering::gather(const vrtile::Load& op, TileValue& value, ir::Block& out) {
  const ir::TensorType type{op.value.dtype(), {op.axes[0].extent, op.axes[1].extent}};
  if (!is_half(type.dtype) || !type.dims[0].is_int(group_rows()))
    return refuse(
        fmt::format("`{}` is no tile of {} rows of 16-bit floats", op.name.str(), group_rows()));
  expr::Substitution own;
  for (size_t k = 0; k < 2; ++k) own.emplace(pool_.index(value.axes[k].name), axis_[k]);
  Expr element = expr::substitute(pool_, value.value, own);
  if (value.condition)
    element = pool_.select(expr::substitute(pool_, value.condition, own), element,
                           pool_.floating(0, type.dtype));
  value.kind = Kind::Register;
  value.type = type;
  value.name = new_register(std::string(op.name.str()) + "_gathered", type);
  out.push_back(ir::make(matile::Set{value.name, own_axes(type), element}));
  return true;
}

bool NestLowering::is_zero(Expr e) {
  return (e.op() == EK::FloatConst && e.number() == 0) ||
         (e.op() == EK::IntConst && e.integer() == 0);
}

std::optional<TileMap> NestLowering::map_for(const TileElements& elements, const TileView& view,
                                             int rows, int cols) {
  std::string key = fmt::format("{} {} {} {} {}", elements.tensor.str(), view.row_dim, rows, cols,
                                view.block_rows ? expr::to_string(view.block_rows) : "");
  if (const auto it = maps_.find(key); it != maps_.end()) {
    TileMap map = it->second;
    map.rest = rest_of(view);
    if (!map.has_panels) return map;
    const auto p = expr::Poly::of(view.col_base);
    const auto panel = p ? expr::divide(*p, map.panel_cols) : std::nullopt;
    if (panel && p->constant_term() % map.panel_cols == 0) return map;
    return fail("its first column is not that of a panel");
  }
  auto map = map_of(elements, view, rows, cols, names_, pool_, why_);
  if (!map) return std::nullopt;
  map_ops_.push_back(ir::make(map->op));
  maps_.emplace(std::move(key), *map);
  return map;
}

ir::Name NestLowering::part_for(ir::Name load, const matile::Map& map, int rows, int cols,
                                size_t last) {
  const std::pair<const ir::Block*, size_t> use{frames_.back().block, last};
  for (PartUse& part : part_uses_) {
    if (part.map != map.name.str()) continue;
    const bool is_busy = std::any_of(part.busy.begin(), part.busy.end(), [&](const auto& b) {
      return std::any_of(frames_.begin(), frames_.end(),
                         [&](const Frame& f) { return f.block == b.first && f.at <= b.second; });
    });
    if (is_busy) continue;
    part.busy.push_back(use);
    return part.name;
  }
  const ir::Name name = names_.make(std::string(load.str()) + "_part");
  part_uses_.push_back({name, std::string(map.name.str()), {use}});
  const ir::TensorType type{map.value.dtype(), {pool_.integer(rows), pool_.integer(cols)}};
  parts_.push_back(ir::make(matile::SlotTile{name, type, map.swizzle}));
  return name;
}

}  // namespace nautilus::lower

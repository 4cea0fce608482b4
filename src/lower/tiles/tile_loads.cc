// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_loads.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/target_of.h"
#include "ir/walk.h"
#include "vrtile/walk.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Op;
using EK = expr::Op;
using TileKind = TileValue::Kind;

namespace {

// Whether the tile, as it is or rounded by another op, is the first operand of a product.
bool is_first_operand(const ir::Block& block, size_t from, ir::Name name) {
  bool found = false;
  for (size_t k = from; k < block.size() && !found; ++k) {
    if (const auto* d = block[k].get<vrtile::Dot>()) found = d->a == name;
    const auto* set = block[k].get<vrtile::Set>();
    bool is_used = false;
    if (set && set->name != name && set->value.op() == EK::Cast)
      vrtile::for_each_use(block[k], [&](ir::Name n) { is_used |= n == name; });
    if (is_used) found = is_first_operand(block, k + 1, set->name);
  }
  return found;
}

}  // namespace

TileLoads::Uses TileLoads::uses_of(const ir::Block& block, size_t from, ir::Name name) {
  Uses uses;
  uses.last = from;
  for (size_t k = from; k < block.size(); ++k) {
    bool here = false;
    ir::for_each_op({block[k]}, [&](const Op& op) {
      bool is_used = false;
      vrtile::for_each_use(op, [&](ir::Name n) { is_used |= n == name; });
      here |= is_used;
      uses.is_stored |= is_used && op.is<vrtile::Store>();
      const auto* set = op.get<vrtile::Set>();
      if (is_used && set) uses.makes_operand |= is_first_operand(block, k, set->name);
      if (const auto* d = op.get<vrtile::Dot>()) {
        uses.is_operand |= d->a == name || d->b == name;
        uses.is_a |= d->a == name;
        uses.is_b |= d->b == name;
      }
    });
    if (here) uses.last = k;
  }
  return uses;
}

bool TileLoads::load(const ir::Block& ops, size_t k, ir::Block& out) {
  const auto& op = ops[k].as<vrtile::Load>();
  if (op.value.op() != EK::Read) return scope_.refuse("a load takes elements of a tensor");
  TileValue value;
  value.kind = TileKind::Load;
  expr::Substitution axes;
  for (const ir::Axis& a : op.axes) {
    const ir::Name name = scope_.names.make("x");
    axes.emplace(pool_.index(a.name), pool_.index(name));
    value.axes.push_back({name, a.extent});
  }
  value.value = scope_.written(op.value, axes);
  if (op.condition) value.condition = scope_.written(op.condition, axes);
  if (op.other) value.other = op.other;
  if (!value.value || (op.condition && !value.condition)) return false;
  const Uses uses = uses_of(ops, k + 1, op.name);
  if (uses.is_operand && !fetch(op, uses, value, out)) return false;
  const bool may_turn = uses.makes_operand && !uses.is_stored;
  if (!uses.is_operand && takes_.is_box(value, may_turn)) value.box_of = &ops;
  if (!uses.is_operand && takes_.is_row_piece(value)) value.row_piece_of = &ops;
  const NestFrame& frame = scope_.frames.back();
  const bool is_row_piece = value.row_piece_of && runs_along_columns(op.name, ops);
  if (frame.may_be_eager && (value.box_of || is_row_piece)) choices_.took_fetch();
  if (value.box_of && frame.is_eager && !takes_.take_box(op.name, value, uses.last, out))
    return false;
  if (is_row_piece && frame.is_eager)
    value.slot_tile = takes_.fetch_row_piece(op.name, value, uses.last, out);
  scope_.tiles.define(op.name, std::move(value));
  return true;
}

bool TileLoads::fetch(const vrtile::Load& op, const Uses& uses, TileValue& value, ir::Block& out) {
  if (!scope_.tensors.contains(op.value.name().str()))
    return scope_.refuse("a load takes elements of a tensor");
  if (op.other && !(op.other.is_const() && scope_.is_zero(op.other)))
    return scope_.refuse(fmt::format("`{}` is not 0 outside its tensor", op.name.str()));
  const TileElements elements = scope_.elements_of(value);
  std::string no_box;
  const auto view = view_of(elements, pool_, &no_box);
  // A first operand may come from registers, where every element has an address of its own.
  if (uses.is_a && !uses.is_b && !view) return gather(op, value, out);
  if (!view) return scope_.refuse(no_box);
  value.is_transposed = view->is_transposed;
  if (view->is_transposed && uses.is_a && uses.is_b)
    return scope_.refuse(
        fmt::format("`{}` is both operands of products, and stored by columns", op.name.str()));
  // In a loop the groups read their rows of one tile; a tile that a group keeps is its own. Rows
  // of the product are neighbours where it is stored by columns.
  Expr row = view->row_base;
  Expr col = view->col_base;
  int rows = view->rows;
  int cols = view->cols;
  if (scope_.frames.back().is_loop && uses.is_a) {
    if (view->is_transposed)
      copies_.join_groups(col, cols, 1, value);
    else
      copies_.join_groups(row, rows, view->row_step, value);
  }
  const auto map = copies_.map_for(elements, *view, rows, cols);
  if (!map) return false;
  CopyFacts facts{.is_read_once = scope_.frames.back().is_loop && is_read_once(elements)};
  if (!elements.type.dims.back().is_int(view->cols))
    facts.piece_bytes = view->cols * expr::bytes(elements.type.dtype);
  copies_.fetches(map->op.name, facts);
  value.slot_tile = copies_.slot_tile_for(op.name, map->op, rows, cols, uses.last);
  out.push_back(ir::make(matile::Fetch{value.slot_tile, map->op.name, map->at(row, col, pool_)}));
  return true;
}

bool TileLoads::gather(const vrtile::Load& op, TileValue& value, ir::Block& out) {
  const ir::TensorType type{op.value.dtype(), {op.axes[0].extent, op.axes[1].extent}};
  if (!is_half(type.dtype) || !type.dims[0].is_int(scope_.group_rows()))
    return scope_.refuse(fmt::format("`{}` is no tile of {} rows of 16-bit floats", op.name.str(),
                                     scope_.group_rows()));
  expr::Substitution own;
  for (size_t k = 0; k < 2; ++k) own.emplace(pool_.index(value.axes[k].name), scope_.axis[k]);
  Expr element = expr::substitute(pool_, value.value, own);
  if (value.condition)
    element = pool_.select(expr::substitute(pool_, value.condition, own), element,
                           pool_.constant(0, type.dtype));
  value.kind = TileKind::Register;
  value.type = type;
  value.name = scope_.new_register(std::string(op.name.str()) + "_gathered", type);
  out.push_back(ir::make(matile::Set{value.name, scope_.own_axes(type), element}));
  return true;
}

bool TileLoads::depends_on_tile(Expr e, Expr tile) const {
  if (expr::depends_on(e, tile)) return true;
  const auto vars = expr::free_vars(e);
  return std::any_of(vars.begin(), vars.end(), [&](Expr v) {
    const auto bounds = loop_bounds_.find(v);
    return bounds != loop_bounds_.end() && (expr::depends_on(bounds->second.first, tile) ||
                                            expr::depends_on(bounds->second.second, tile));
  });
}

bool TileLoads::is_read_once(const TileElements& e) const {
  return std::all_of(used_axes_.begin(), used_axes_.end(), [&](const ir::Axis& a) {
    return a.extent.is_int(1) || std::any_of(e.indices.begin(), e.indices.end(), [&](Expr i) {
             return depends_on_tile(i, pool_.index(a.name));
           });
  });
}

bool TileLoads::runs_along_columns(ir::Name line, const ir::Block& body) const {
  bool ok = true;
  for (const Op& op : body) {
    Expr column;
    if (const auto* set = op.get<vrtile::Set>(); set && set->axes.size() == 2)
      column = pool_.index(set->axes[1].name);
    if (const auto* r = op.get<vrtile::Reduce>(); r && r->value.op() == expr::Op::Reduce)
      column = r->value.axis(0);
    ir::for_each_expr(op, [&](Expr e) {
      expr::for_each(e, [&](Expr x) {
        if (x.op() == expr::Op::Read && x.name() == line) ok &= x[0] == column;
      });
    });
  }
  return ok;
}

std::string refuse_computed_operand(ir::Name operand) {
  return fmt::format("`{}`: the second operand of a product is loaded", operand.str());
}

std::string refuse_second_operands(const ir::Program& tiles, const Op& nest, expr::ExprPool& pool) {
  const target::Copies& copies = ir::target_of(tiles).copies;
  // Tiles in another dtype or by another name may still be what was loaded.
  std::unordered_set<ir::Name> computed;
  ir::for_each_op({nest}, [&](const Op& op) {
    const auto* set = op.get<vrtile::Set>();
    if (set && set->value.op() != EK::Read && set->value.op() != EK::Cast)
      computed.insert(set->name);
  });
  std::string why;
  const auto look_at = [&](const auto& self, const ir::Block& block) -> void {
    for (size_t k = 0; k < block.size() && why.empty(); ++k) {
      for (const ir::Field& f : block[k].info().fields) {
        if (f.kind == ir::FieldKind::Body)
          self(self, ir::field_value<ir::Block>(block[k].data(), f));
      }
      const auto* dot = block[k].get<vrtile::Dot>();
      if (dot && why.empty() && computed.contains(dot->b)) why = refuse_computed_operand(dot->b);
      const auto* load = block[k].get<vrtile::Load>();
      if (!load || load->value.op() != EK::Read || !why.empty()) continue;
      if (!TileLoads::uses_of(block, k + 1, load->name).is_b) continue;
      const auto indices = load->value.args();
      why = refuse_box({&copies,
                        load->value.name(),
                        {},
                        {indices.begin(), indices.end()},
                        load->axes,
                        {},
                        nullptr},
                       pool);
    }
  };
  look_at(look_at, {nest});
  return why;
}

}  // namespace nautilus::lower

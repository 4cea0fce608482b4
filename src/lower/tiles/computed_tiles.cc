// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/computed_tiles.h"

#include <fmt/format.h>

#include "lower/tiles/tile_loads.h"
#include "lower/tiles/used_names.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;
using TileKind = TileValue::Kind;

bool ComputedTiles::set(const vrtile::Set& op, const ir::Block& ops, size_t k, ir::Block& out) {
  const ir::TensorType type = vrtile::type_of(ops[k]);
  if (scope_.is_register_type(type) && stores_.is_deferred(op, ops, k)) {
    stores_.defer(op);
    return true;
  }
  const Expr column = op.axes.size() == 2 ? pool_.index(op.axes[1].name) : Expr();
  if (!takes_.take_operands(used_by(ops[k]), op.value, column, out)) return false;
  if (!scope_.is_register_type(type)) {
    // Conditions, positions, 16-bit rows: written where they are used.
    TileValue value;
    value.kind = TileKind::Inline;
    expr::Substitution axes;
    for (const ir::Axis& a : op.axes) {
      const ir::Name name = scope_.names.make("x");
      axes.emplace(pool_.index(a.name), pool_.index(name));
      value.axes.push_back({name, a.extent});
    }
    value.value = scope_.written(op.value, axes);
    if (!value.value) return false;
    scope_.tiles.define(op.name, std::move(value));
    return true;
  }
  const Expr value = scope_.written(op.value, scope_.axes_to_own(op.axes));
  if (!value) return false;
  const TileValue& tile = scope_.new_tile(op.name, type);
  out.push_back(ir::make(matile::Set{tile.name, scope_.own_axes(type), value}));
  return true;
}

bool ComputedTiles::reduce(const vrtile::Reduce& op, const std::vector<ir::Name>& used,
                           ir::Block& out) {
  const Expr r = op.value;
  if (r.op() != EK::Reduce || r.init())
    return scope_.refuse(fmt::format("`{}` is no plain reduction", op.name.str()));
  const bool has_column = r.axis_count() == 1 && op.axes.size() == 1;
  if (!takes_.take_operands(used, r.body(), has_column ? r.axis(0) : Expr(), out)) return false;
  if (r.reducer() == expr::Reducer::Any) return vote(op, out);
  if (r.reducer() != expr::Reducer::Sum && r.reducer() != expr::Reducer::Max &&
      r.reducer() != expr::Reducer::Min)
    return scope_.refuse(fmt::format("`{}`: tiles are reduced by sum, max and min", op.name.str()));
  if (op.axes.size() != 1 || r.axis_count() != 1)
    return scope_.refuse(fmt::format("`{}`: one axis of a tile of two is reduced", op.name.str()));
  expr::Substitution axes = scope_.axes_to_own(op.axes);
  axes.emplace(r.axis(0), scope_.axis[1]);
  Expr value = scope_.written(r, axes);
  if (!value) return false;
  const ir::TensorType type{value.dtype(), {op.axes[0].extent}};
  if (!scope_.is_register_type(type))
    return scope_.refuse(fmt::format("`{}`: reductions of tiles are in f32", op.name.str()));
  // A tile with exactly the axes says who holds what.
  const ir::TensorType whole{value.dtype(), {op.axes[0].extent, r.extent(0)}};
  if (!scope_.reads_tile(value.body(), whole)) {
    const ir::Name made = scope_.new_register(std::string(op.name.str()) + "_terms", whole);
    out.push_back(ir::make(matile::Set{made, scope_.own_axes(whole), value.body()}));
    const std::vector<Expr> own(scope_.axis, scope_.axis + 2);
    const Expr axes_of[] = {scope_.axis[1]};
    const Expr extents[] = {r.extent(0)};
    value = pool_.reduce(r.reducer(), pool_.read(made, value.dtype(), own), axes_of, extents);
  }
  const TileValue& tile = scope_.new_tile(op.name, type);
  out.push_back(ir::make(matile::Reduce{tile.name, scope_.own_axes(type), value}));
  return true;
}

bool ComputedTiles::vote(const vrtile::Reduce& op, ir::Block& out) {
  const Expr r = op.value;
  const int64_t rows = scope_.target.matrix.warp_rows;
  if (op.axes.size() != 1 || !op.axes[0].extent.is_int(scope_.group_rows() / rows) ||
      r.axis_count() != 1 || !r.extent(0).is_int(rows))
    return scope_.refuse(fmt::format("`{}`: a vote is taken per {} rows of {}", op.name.str(), rows,
                                     scope_.group_rows()));
  const Expr g = pool_.index(op.axes[0].name);
  const Expr row = pool_.binary(EK::Add, pool_.binary(EK::Mul, pool_.integer(rows), g), r.axis(0));
  const ir::Name axis = scope_.names.make("row");
  const Expr joined = expr::rebuild(pool_, r.body(), [&](Expr x) {
    return x.dtype() == DType::I64 && expr::same_index(x, row) ? pool_.index(axis) : x;
  });
  if (expr::depends_on(joined, g) || expr::depends_on(joined, r.axis(0)))
    return scope_.refuse(
        fmt::format("`{}`: a vote looks at rows of its group alone", op.name.str()));
  const Expr body = scope_.written(joined, expr::Substitution{{pool_.index(axis), scope_.axis[0]}});
  if (!body) return false;
  const Expr axes[] = {scope_.axis[0]};
  const Expr extents[] = {pool_.integer(scope_.group_rows())};
  TileValue value;
  value.kind = TileKind::Vote;
  value.rows = rows;
  value.name = scope_.names.make(op.name.str());
  out.push_back(
      ir::make(matile::Vote{value.name, pool_.reduce(expr::Reducer::Any, body, axes, extents)}));
  scope_.tiles.define(op.name, std::move(value));
  return true;
}

bool ComputedTiles::dot(const vrtile::Dot& op, ir::Block& out) {
  const TileValue* a = scope_.tiles.find(op.a);
  const TileValue* b = scope_.tiles.find(op.b);
  if (!b || !b->slot_tile) return scope_.refuse(refuse_computed_operand(op.b));
  if (!a || (!a->slot_tile && (a->kind != TileKind::Register || !is_half(a->type.dtype))))
    return scope_.refuse(
        fmt::format("`{}`: the first operand of a product is loaded or 16-bit", op.a.str()));
  if (const DType sum = expr::compute_dtype(b->value.dtype()); op.type.dtype != sum)
    return scope_.refuse(fmt::format("products of {} accumulate in {}",
                                     expr::name(b->value.dtype()), expr::name(sum)));
  matile::Dot dot;
  dot.a = a->slot_tile ? a->slot_tile : a->name;
  dot.rows = a->slot_tile ? a->first_row : Expr();
  if (a->slot_tile && a->is_transposed) dot.trans_a = matile::Trans::Yes;
  dot.b = b->slot_tile;
  const bool is_trans = (op.trans == vrtile::Trans::Yes) != b->is_transposed;
  dot.trans = is_trans ? matile::Trans::Yes : matile::Trans::No;
  dot.mode = op.acc ? matile::DotMode::Add : matile::DotMode::Init;
  const TileValue acc =
      op.acc && scope_.tiles.find(op.acc) ? *scope_.tiles.find(op.acc) : TileValue{};
  dot.acc = scope_.new_tile(op.name, op.type).name;
  if (op.acc) {
    if (acc.kind != TileKind::Register || !acc.name)
      return scope_.refuse(fmt::format("`{}` is no register tile", op.acc.str()));
    scope_.copy(dot.acc, op.type, acc.name, out);
  }
  out.push_back(ir::make(std::move(dot)));
  has_dot_ = true;
  return true;
}

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// Values that a kernel computes: element-wise ones, reductions, votes and products.
#include <fmt/format.h>

#include <algorithm>

#include "ir/walk.h"
#include "lower/tiles/tile_lowering.h"
#include "lower/tiles/used_names.h"
#include "vrtile/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;
using Kind = TileValue::Kind;

bool NestLowering::set(const vrtile::Set& op, const ir::Block& ops, size_t k, ir::Block& out) {
  const ir::TensorType type = vrtile::type_of(ops[k]);
  if (is_register_type(type) && is_deferred(op, ops, k)) {
    deferred_.push_back(op);
    return true;
  }
  const Expr column = op.axes.size() == 2 ? pool_.index(op.axes[1].name) : Expr();
  if (!take_operands(used_by(ops[k]), op.value, column, out)) return false;
  if (!is_register_type(type)) {
    // Conditions, positions, 16-bit rows: written where they are used.
    TileValue value;
    value.kind = Kind::Inline;
    expr::Substitution axes;
    for (const ir::Axis& a : op.axes) {
      const ir::Name name = names_.make("x");
      axes.emplace(pool_.index(a.name), pool_.index(name));
      value.axes.push_back({name, a.extent});
    }
    value.value = tiles_.written(op.value, axes, why_);
    if (!value.value) return false;
    tiles_.define(op.name, std::move(value));
    return true;
  }
  const Expr value = tiles_.written(op.value, axes_to_own(op.axes), why_);
  if (!value) return false;
  const TileValue& tile = new_tile(op.name, type);
  out.push_back(ir::make(matile::Set{tile.name, own_axes(type), value}));
  return true;
}

bool NestLowering::is_deferred(const vrtile::Set& op, const ir::Block& ops, size_t k) const {
  if (frames_.size() != 1 || op.axes.size() != 2) return false;
  if (op.axes[1].extent.integer() <= panel() && op.axes[0].extent.integer() <= group_rows())
    return false;
  for (size_t j = k + 1; j < ops.size(); ++j) {
    bool uses = false;
    ir::for_each_op({ops[j]}, [&](const Op& inner) {
      vrtile::for_each_use(inner, [&](ir::Name n) { uses |= n == op.name; });
    });
    if (!uses) continue;
    if (const auto* s = ops[j].get<vrtile::Store>()) {
      if (!is_same_shape(s->axes, op.axes) || !is_identity(s->value, op.name, s->axes) ||
          !stores_panels(*s))
        return false;
    } else if (const auto* s2 = ops[j].get<vrtile::Set>()) {
      if (!is_same_shape(s2->axes, op.axes) || !is_identity(s2->value, op.name, s2->axes) ||
          !is_deferred(*s2, ops, j))
        return false;
    } else {
      return false;
    }
  }
  return true;
}

bool NestLowering::is_same_shape(const ir::Axes& a, const ir::Axes& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const ir::Axis& x, const ir::Axis& y) { return x.extent == y.extent; });
}

bool NestLowering::is_identity(Expr value, ir::Name tile, const ir::Axes& axes) {
  bool ok = true;
  expr::for_each(value, [&](Expr x) {
    if (x.op() != EK::Read || x.name() != tile) return;
    for (size_t k = 0; k < axes.size(); ++k)
      ok &= x[k].op() == EK::Var && x[k].name() == axes[k].name;
  });
  return ok;
}

bool NestLowering::flush_deferred() {
  return deferred_.empty() || refuse("a tile for a store stands before a loop");
}

bool NestLowering::reduce(const vrtile::Reduce& op, const std::vector<ir::Name>& used,
                          ir::Block& out) {
  const Expr r = op.value;
  if (r.op() != EK::Reduce || r.init())
    return refuse(fmt::format("`{}` is no plain reduction", op.name.str()));
  const bool has_column = r.axis_count() == 1 && op.axes.size() == 1;
  if (!take_operands(used, r.body(), has_column ? r.axis(0) : Expr(), out)) return false;
  if (r.reducer() == expr::Reducer::Any) return vote(op, out);
  if (r.reducer() != expr::Reducer::Sum && r.reducer() != expr::Reducer::Max &&
      r.reducer() != expr::Reducer::Min)
    return refuse(fmt::format("`{}`: tiles are reduced by sum, max and min", op.name.str()));
  if (op.axes.size() != 1 || r.axis_count() != 1)
    return refuse(fmt::format("`{}`: one axis of a tile of two is reduced", op.name.str()));
  expr::Substitution axes = axes_to_own(op.axes);
  axes.emplace(r.axis(0), axis_[1]);
  Expr value = tiles_.written(r, axes, why_);
  if (!value) return false;
  const ir::TensorType type{value.dtype(), {op.axes[0].extent}};
  if (!is_register_type(type))
    return refuse(fmt::format("`{}`: reductions of tiles are in f32", op.name.str()));
  // A tile with exactly the axes says who holds what.
  const ir::TensorType whole{value.dtype(), {op.axes[0].extent, r.extent(0)}};
  if (!reads_tile(value.body(), whole)) {
    const ir::Name made = new_register(std::string(op.name.str()) + "_terms", whole);
    out.push_back(ir::make(matile::Set{made, own_axes(whole), value.body()}));
    const std::vector<Expr> own(axis_, axis_ + 2);
    const Expr axes_of[] = {axis_[1]};
    const Expr extents[] = {r.extent(0)};
    value = pool_.reduce(r.reducer(), pool_.read(made, value.dtype(), own), axes_of, extents);
  }
  const TileValue& tile = new_tile(op.name, type);
  out.push_back(ir::make(matile::Reduce{tile.name, own_axes(type), value}));
  return true;
}

bool NestLowering::vote(const vrtile::Reduce& op, ir::Block& out) {
  const Expr r = op.value;
  const int64_t rows = target_.matrix.warp_rows;
  if (op.axes.size() != 1 || !op.axes[0].extent.is_int(group_rows() / rows) ||
      r.axis_count() != 1 || !r.extent(0).is_int(rows))
    return refuse(
        fmt::format("`{}`: a vote is taken per {} rows of {}", op.name.str(), rows, group_rows()));
  const Expr g = pool_.index(op.axes[0].name);
  const Expr row = pool_.binary(EK::Add, pool_.binary(EK::Mul, pool_.integer(rows), g), r.axis(0));
  const ir::Name axis = names_.make("row");
  const Expr joined = expr::rebuild(pool_, r.body(), [&](Expr x) {
    return x.dtype() == DType::I64 && expr::same_index(x, row) ? pool_.index(axis) : x;
  });
  if (expr::depends_on(joined, g) || expr::depends_on(joined, r.axis(0)))
    return refuse(fmt::format("`{}`: a vote looks at rows of its group alone", op.name.str()));
  const Expr body = tiles_.written(joined, expr::Substitution{{pool_.index(axis), axis_[0]}}, why_);
  if (!body) return false;
  const Expr axes[] = {axis_[0]};
  const Expr extents[] = {pool_.integer(group_rows())};
  TileValue value;
  value.kind = Kind::Vote;
  value.rows = rows;
  value.name = names_.make(op.name.str());
  out.push_back(
      ir::make(matile::Vote{value.name, pool_.reduce(expr::Reducer::Any, body, axes, extents)}));
  tiles_.define(op.name, std::move(value));
  return true;
}

bool NestLowering::dot(const vrtile::Dot& op, ir::Block& out) {
  const TileValue* a = tiles_.find(op.a);
  const TileValue* b = tiles_.find(op.b);
  if (!b || !b->part)
    return refuse(fmt::format("`{}`: the second operand of a product is loaded", op.b.str()));
  if (!a || (!a->part && (a->kind != Kind::Register || !is_half(a->type.dtype))))
    return refuse(
        fmt::format("`{}`: the first operand of a product is loaded or 16-bit", op.a.str()));
  if (op.type.dtype != DType::F32) return refuse("products accumulate in f32");
  matile::Dot dot;
  dot.a = a->part ? a->part : a->name;
  dot.rows = a->part ? a->first_row : Expr();
  dot.b = b->part;
  const bool is_trans = (op.trans == vrtile::Trans::Yes) != b->is_transposed;
  dot.trans = is_trans ? matile::Trans::Yes : matile::Trans::No;
  dot.mode = op.acc ? matile::DotMode::Add : matile::DotMode::Init;
  const TileValue acc = op.acc && tiles_.find(op.acc) ? *tiles_.find(op.acc) : TileValue{};
  dot.acc = new_tile(op.name, op.type).name;
  if (op.acc) {
    if (acc.kind != Kind::Register || !acc.name)
      return refuse(fmt::format("`{}` is no register tile", op.acc.str()));
    copy(dot.acc, op.type, acc.name, out);
  }
  out.push_back(ir::make(std::move(dot)));
  has_dot_ = true;
  return true;
}

}  // namespace nautilus::lower

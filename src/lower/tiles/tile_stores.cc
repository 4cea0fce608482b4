// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/walk.h"
#include "vrtile/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;
using TileKind = TileValue::Kind;

namespace {

bool is_same_shape(const ir::Axes& a, const ir::Axes& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const ir::Axis& x, const ir::Axis& y) { return x.extent == y.extent; });
}

// Every read of the tile is at the op's own axes.
bool is_identity(Expr value, ir::Name tile, const ir::Axes& axes) {
  bool ok = true;
  expr::for_each(value, [&](Expr x) {
    if (x.op() != EK::Read || x.name() != tile) return;
    for (size_t k = 0; k < axes.size(); ++k)
      ok &= x[k].op() == EK::Var && x[k].name() == axes[k].name;
  });
  return ok;
}

}  // namespace

bool TileStores::is_deferred(const vrtile::Set& op, const ir::Block& ops, size_t k) const {
  if (scope_.frames.size() != 1 || op.axes.size() != 2) return false;
  if (op.axes[1].extent.integer() <= scope_.panel() &&
      op.axes[0].extent.integer() <= scope_.group_rows())
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

bool TileStores::stores_panels(const vrtile::Store& op) const {
  return op.axes.size() == 2 && is_half(op.value.dtype()) &&
         op.axes[0].extent.integer() % scope_.group_rows() == 0 &&
         op.axes[1].extent.integer() % scope_.panel() == 0 && !stores_whole(op);
}

bool TileStores::stores_whole(const vrtile::Store& op) const {
  const auto type = scope_.tensors.find(op.target.str());
  if (type == scope_.tensors.end() || op.axes.size() != 2) return false;
  // Several panels in a box are a dimension of their own.
  const bool has_room = op.axes[1].extent.is_int(scope_.panel()) ||
                        static_cast<int>(type->second.dims.size()) < scope_.target.copies.box_axes;
  return is_half(op.value.dtype()) && op.axes[0].extent.is_int(scope_.group_rows()) &&
         op.axes[1].extent.integer() % scope_.panel() == 0 &&
         op.axes[1].extent.integer() <= scope_.target.copies.box_extent &&
         type->second.dims.back() == op.axes[1].extent && has_room;
}

bool TileStores::store(const vrtile::Store& op, const std::vector<ir::Name>& used, ir::Block& out) {
  const auto type = scope_.tensors.find(op.target.str());
  if (type == scope_.tensors.end()) return scope_.refuse("a store writes a tensor");
  const bool is_whole = stores_whole(op);
  if (is_whole || stores_panels(op)) {
    const expr::Substitution axes = scope_.axes_to_own(op.axes);
    TileElements elements{&scope_.target.copies,    op.target, type->second,    {},
                          scope_.own_axes(op.axes), {},        &scope_.divisors};
    for (Expr e : op.indices) elements.indices.push_back(scope_.written(e, axes));
    if (op.condition) elements.condition = scope_.written(op.condition, axes);
    std::string ignored;
    const auto view = view_of(elements, pool_, &ignored);
    const bool is_box = view && !view->is_transposed && view->row_step == 1;
    if (is_box && !is_whole) return store_panels(op, elements, *view, out);
    if (is_box)
      return takes_.take_operands(used, op.value, pool_.index(op.axes[1].name), out) &&
             store_whole(op, elements, *view, out);
  }
  if (!deferred_.empty()) return scope_.refuse("a tile for a store is stored in two ways");
  const Expr column = op.axes.size() == 2 ? pool_.index(op.axes[1].name) : Expr();
  return takes_.take_operands(used, op.value, column, out) && put(op, out);
}

bool TileStores::store_whole(const vrtile::Store& op, const TileElements& elements,
                             const TileView& view, ir::Block& out) {
  const auto map = copies_.map_for(elements, view, view.rows, view.cols);
  const Expr value = scope_.written(op.value, scope_.axes_to_own(op.axes));
  if (!map || !value) return false;
  const ir::TensorType type{value.dtype(), {op.axes[0].extent, op.axes[1].extent}};
  const ir::Name y = scope_.new_register(std::string(op.target.str()) + "_out", type);
  out.push_back(ir::make(matile::Set{y, scope_.own_axes(type), value}));
  out.push_back(
      ir::make(matile::Store{map->op.name, map->at(view.row_base, view.col_base, pool_), y, {}}));
  return true;
}

bool TileStores::store_panels(const vrtile::Store& op, const TileElements& elements,
                              const TileView& view, ir::Block& out) {
  const auto map = copies_.map_for(elements, view, scope_.group_rows(), scope_.panel());
  if (!map) return false;
  stored_panels_ = true;
  const int64_t row_blocks = view.rows / scope_.group_rows();
  const int64_t panels = view.cols / scope_.panel();
  Panel panel{{}, scope_.axis[0], scope_.axis[1], {}, {}};
  Expr row_base = view.row_base;
  Expr col_base = view.col_base;
  const auto shifted = [&](const char* stem, int64_t count, int64_t step, Expr& axis, Expr& base) {
    const ir::Name name = scope_.names.make(stem);
    panel.unroll.axes.push_back({name, pool_.integer(count)});
    const Expr offset = pool_.binary(EK::Mul, pool_.integer(step), pool_.index(name));
    axis = pool_.binary(EK::Add, offset, axis);
    base = base.is_int(0) ? offset : pool_.binary(EK::Add, base, offset);
  };
  if (row_blocks > 1) shifted("v", row_blocks, scope_.group_rows(), panel.row, row_base);
  shifted("q", panels, scope_.panel(), panel.col, col_base);
  if (row_blocks > 1) panel.row_offset = panel.row[0];
  if (!take_loads(op, panel, out)) return false;
  // Element-wise work of the panel first; its tiles are those of one panel.
  for (const vrtile::Set& s : deferred_) {
    const auto made = set_panel(s.value, s.axes, s.name.str(), panel);
    if (!made) return false;
    stand_for(s.name, made->name, made->type.dtype, panel);
  }
  const auto y = set_panel(op.value, op.axes, std::string(op.target.str()) + "_out", panel);
  if (!y) return false;
  panel.unroll.body.push_back(
      ir::make(matile::Store{map->op.name, map->at(row_base, col_base, pool_), y->name, {}}));
  out.push_back(ir::make(std::move(panel.unroll)));
  return true;
}

void TileStores::stand_for(ir::Name stem, ir::Name part, DType dtype, Panel& panel) {
  TileValue whole;
  whole.name = scope_.names.make(std::string(stem.str()) + "_whole");
  const std::vector<Expr> at = {panel.row, panel.col};
  const std::vector<Expr> own = {scope_.axis[0], scope_.axis[1]};
  panel.tiles.emplace_back(pool_.read(whole.name, dtype, at), pool_.read(part, dtype, own));
  scope_.tiles.define(stem, whole);
}

std::optional<TileStores::PanelTile> TileStores::set_panel(Expr value, const ir::Axes& axes,
                                                           std::string_view stem, Panel& panel) {
  const expr::Substitution at{{pool_.index(axes[0].name), panel.row},
                              {pool_.index(axes[1].name), panel.col}};
  const Expr whole = scope_.written(value, at);
  if (!whole) return std::nullopt;
  expr::Substitution parts;
  for (const auto& [of_whole, of_panel] : panel.tiles) parts.emplace(of_whole, of_panel);
  const Expr written = expr::substitute(pool_, whole, parts);
  const ir::TensorType type{written.dtype(),
                            {pool_.integer(scope_.group_rows()), pool_.integer(scope_.panel())}};
  const ir::Name name = scope_.new_register(stem, type);
  panel.unroll.body.push_back(ir::make(matile::Set{name, scope_.own_axes(type), written}));
  return PanelTile{name, type};
}

bool TileStores::take_loads(const vrtile::Store& op, Panel& panel, ir::Block& out) {
  const PanelLoads loads = panel_loads(op);
  ir::Block takes;
  for (ir::Name line : loads.lines) {
    const TileValue value = *scope_.tiles.find(line);
    const ir::Name slot_tile = takes_.fetch_row_piece(line, value, scope_.frames.back().at, out);
    const ir::Name taken =
        takes_.take_row_piece(line, slot_tile, scope_.panel(), panel.col[0], takes);
    TileValue whole = value;
    whole.kind = TileKind::Register;
    whole.type = {DType::F32, {value.axes[0].extent}};
    whole.name = scope_.names.make(std::string(line.str()) + "_whole");
    panel.tiles.emplace_back(pool_.read(whole.name, DType::F32, {&panel.col, 1}),
                             pool_.read(taken, DType::F32, {&scope_.axis[1], 1}));
    scope_.tiles.define(line, std::move(whole));
  }
  for (ir::Name box : loads.boxes) {
    const TileValue value = *scope_.tiles.find(box);
    const ir::Name taken =
        takes_.take_panel(box, value, panel.row_offset, panel.col[0], panel.unroll.body, takes);
    if (!taken) return false;
    stand_for(box, taken, value.value.dtype(), panel);
  }
  for (Op& take : takes) panel.unroll.body.push_back(std::move(take));
  return true;
}

TileStores::PanelLoads TileStores::panel_loads(const vrtile::Store& op) {
  PanelLoads found;
  std::set<std::string> others;
  const auto look_at = [&](Expr value, const ir::Axes& axes) {
    expr::for_each(value, [&](Expr x) {
      const TileValue* tile = x.op() == EK::Read ? scope_.tiles.find(x.name()) : nullptr;
      if (!tile || tile->kind != TileKind::Load || tile->slot_tile ||
          (!tile->box_of && !tile->row_piece_of))
        return;
      auto& names = tile->box_of ? found.boxes : found.lines;
      if (std::find(names.begin(), names.end(), x.name()) == names.end()) names.push_back(x.name());
      const bool is_plain = tile->box_of
                                ? is_same_shape(tile->axes, axes) && is_identity(x, x.name(), axes)
                                : x[0] == pool_.index(axes[1].name);
      if (!is_plain) others.emplace(x.name().str());
    });
  };
  for (const vrtile::Set& s : deferred_) look_at(s.value, s.axes);
  look_at(op.value, op.axes);
  for (auto* names : {&found.boxes, &found.lines})
    std::erase_if(*names, [&](ir::Name n) { return others.contains(std::string(n.str())); });
  return found;
}

bool TileStores::put(const vrtile::Store& op, ir::Block& out) {
  if (op.axes.empty() || op.axes.size() > 2) return scope_.refuse("a store writes a tile");
  const expr::Substitution axes = scope_.axes_to_own(op.axes);
  Expr value = scope_.written(op.value, axes);
  if (!value) return false;
  // A tile with exactly the axes says who stores what.
  ir::TensorType type{DType::F32, {}};
  for (const ir::Axis& a : op.axes) type.dims.push_back(a.extent);
  const bool reads_tile = scope_.reads_tile(value, type);
  const bool is_integer = expr::is_int(value.dtype()) && expr::bytes(value.dtype()) <= 4;
  if (value.dtype() != DType::F32 && !is_half(value.dtype()) && !(is_integer && reads_tile))
    return scope_.refuse(fmt::format("elements of {} cannot be stored", expr::name(value.dtype())));
  if (!reads_tile) {
    const Expr f32 = value.dtype() == DType::F32 ? value : pool_.cast(DType::F32, value);
    const ir::Name name = scope_.new_register(std::string(op.target.str()) + "_out", type);
    out.push_back(ir::make(matile::Set{name, scope_.own_axes(type), f32}));
    const std::vector<Expr> own(scope_.axis, scope_.axis + type.dims.size());
    const Expr read = pool_.read(name, DType::F32, own);
    value = value.dtype() == DType::F32 ? read : pool_.cast(value.dtype(), read);
  }
  matile::Put put;
  put.axes = scope_.own_axes(type);
  put.target = op.target;
  put.value = value;
  for (Expr e : op.indices) {
    const Expr index = scope_.written(e, axes);
    if (!index) return false;
    put.indices.push_back(index);
  }
  if (op.condition) {
    put.condition = scope_.written(op.condition, axes);
    if (!put.condition) return false;
  }
  out.push_back(ir::make(std::move(put)));
  return true;
}

}  // namespace nautilus::lower

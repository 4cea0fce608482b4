// SPDX-License-Identifier: Apache-2.0
// What a tile nest writes.
#include <fmt/format.h>

#include <algorithm>

#include "lower/tiles/tile_lowering.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using ir::Op;
using EK = expr::Op;
using Kind = TileValue::Kind;

bool NestLowering::stores_panels(const vrtile::Store& op) const {
  return op.axes.size() == 2 && is_half(op.value.dtype()) &&
         op.axes[0].extent.integer() % group_rows() == 0 &&
         op.axes[1].extent.integer() % panel() == 0 && !stores_whole(op);
}

bool NestLowering::stores_whole(const vrtile::Store& op) const {
  const auto type = tensors_.find(op.target.str());
  return type != tensors_.end() && op.axes.size() == 2 && is_half(op.value.dtype()) &&
         op.axes[0].extent.is_int(group_rows()) && op.axes[1].extent.integer() % panel() == 0 &&
         op.axes[1].extent.integer() <= target_.copies.box_extent &&
         type->second.dims.back() == op.axes[1].extent;
}

bool NestLowering::store(const vrtile::Store& op, const std::vector<ir::Name>& used,
                         ir::Block& out) {
  const auto type = tensors_.find(op.target.str());
  if (type == tensors_.end()) return refuse("a store writes a tensor");
  const bool is_whole = stores_whole(op);
  if (is_whole || stores_panels(op)) {
    const expr::Substitution axes = axes_to_own(op.axes);
    TileElements elements{&target_.copies,      op.target, type->second, {},
                          own_axes_of(op.axes), {},        &divisors_};
    for (Expr e : op.indices) elements.indices.push_back(tiles_.written(e, axes, why_));
    if (op.condition) elements.condition = tiles_.written(op.condition, axes, why_);
    std::string ignored;
    const auto view = view_of(elements, pool_, &ignored);
    if (view && !view->is_transposed && !is_whole) return store_panels(op, elements, *view, out);
    if (view && !view->is_transposed)
      return take_operands(used, op.value, pool_.index(op.axes[1].name), out) &&
             store_whole(op, elements, *view, out);
  }
  if (!deferred_.empty()) return refuse("a tile for a store is stored in two ways");
  const Expr column = op.axes.size() == 2 ? pool_.index(op.axes[1].name) : Expr();
  return take_operands(used, op.value, column, out) && put(op, out);
}

ir::Axes NestLowering::own_axes_of(const ir::Axes& axes) const {
  ir::Axes out;
  for (size_t k = 0; k < axes.size(); ++k) out.push_back({axis_[k].name(), axes[k].extent});
  return out;
}

bool NestLowering::store_whole(const vrtile::Store& op, const TileElements& elements,
                               const TileView& view, ir::Block& out) {
  const auto map = map_for(elements, view, view.rows, view.cols);
  const Expr value = tiles_.written(op.value, axes_to_own(op.axes), why_);
  if (!map || !value) return false;
  const ir::TensorType type{value.dtype(), {op.axes[0].extent, op.axes[1].extent}};
  const ir::Name y = new_register(std::string(op.target.str()) + "_out", type);
  out.push_back(ir::make(matile::Set{y, own_axes(type), value}));
  out.push_back(
      ir::make(matile::Store{map->op.name, map->at(view.row_base, view.col_base, pool_), y, {}}));
  return true;
}

bool NestLowering::store_panels(const vrtile::Store& op, const TileElements& elements,
                                const TileView& view, ir::Block& out) {
  const auto map = map_for(elements, view, group_rows(), panel());
  if (!map) return false;
  stored_panels_ = true;
  matile::Unroll unroll;
  const int64_t row_blocks = view.rows / group_rows();
  const int64_t panels = view.cols / panel();
  Expr row = axis_[0];
  Expr row_base = view.row_base;
  const auto shifted = [&](const char* stem, int64_t count, int64_t step, Expr& axis, Expr& base) {
    const ir::Name name = names_.make(stem);
    unroll.axes.push_back({name, pool_.integer(count)});
    const Expr offset = pool_.binary(EK::Mul, pool_.integer(step), pool_.index(name));
    axis = pool_.binary(EK::Add, offset, axis);
    base = base.is_int(0) ? offset : pool_.binary(EK::Add, base, offset);
  };
  if (row_blocks > 1) shifted("v", row_blocks, group_rows(), row, row_base);
  Expr col = axis_[1];
  Expr col_base = view.col_base;
  shifted("q", panels, panel(), col, col_base);
  const ir::TensorType block_type{DType::F32,
                                  {pool_.integer(group_rows()), pool_.integer(panel())}};
  // Element-wise work of the panel first; its tiles are those of one panel.
  const std::vector<Expr> own = {axis_[0], axis_[1]};
  std::vector<std::pair<Expr, Expr>> panel_tiles;
  const auto written = [&](Expr value, const ir::Axes& axes) {
    const expr::Substitution at{{pool_.index(axes[0].name), row}, {pool_.index(axes[1].name), col}};
    Expr e = tiles_.written(value, at, why_);
    if (!e) return e;
    expr::Substitution replaced;
    for (const auto& [whole, panel] : panel_tiles) replaced.emplace(whole, panel);
    return expr::substitute(pool_, e, replaced);
  };
  const auto whole_tile = [&](ir::Name stem, ir::Name panel, DType dtype) {
    TileValue whole;
    whole.name = names_.make(std::string(stem.str()) + "_whole");
    const std::vector<Expr> at = {row, col};
    panel_tiles.emplace_back(pool_.read(whole.name, dtype, at), pool_.read(panel, dtype, own));
    tiles_.define(stem, whole);
  };
  const Expr row_offset = row_blocks > 1 ? row[0] : Expr();
  const PanelLoads loads = panel_loads(op);
  ir::Block takes;
  for (ir::Name line : loads.lines) {
    const TileValue value = *tiles_.find(line);
    const ir::Name part = fetch_row_piece(line, value, frames_.back().at, out);
    const ir::Name taken = take_row_piece(line, part, panel(), col[0], takes);
    TileValue whole = value;
    whole.kind = Kind::Register;
    whole.type = {DType::F32, {value.axes[0].extent}};
    whole.name = names_.make(std::string(line.str()) + "_whole");
    panel_tiles.emplace_back(pool_.read(whole.name, DType::F32, {&col, 1}),
                             pool_.read(taken, DType::F32, {&axis_[1], 1}));
    tiles_.define(line, std::move(whole));
  }
  for (ir::Name box : loads.boxes) {
    const TileValue value = *tiles_.find(box);
    const ir::Name taken = take_panel(box, value, row_offset, col[0], unroll.body, takes);
    if (!taken) return false;
    whole_tile(box, taken, value.value.dtype());
  }
  for (Op& take : takes) unroll.body.push_back(std::move(take));
  for (const vrtile::Set& s : deferred_) {
    const Expr value = written(s.value, s.axes);
    if (!value) return false;
    ir::TensorType type = block_type;
    type.dtype = value.dtype();
    const ir::Name name = new_register(s.name.str(), type);
    unroll.body.push_back(ir::make(matile::Set{name, own_axes(type), value}));
    whole_tile(s.name, name, type.dtype);
  }
  const Expr value = written(op.value, op.axes);
  if (!value) return false;
  ir::TensorType type = block_type;
  type.dtype = value.dtype();
  const ir::Name y = new_register(std::string(op.target.str()) + "_out", type);
  unroll.body.push_back(ir::make(matile::Set{y, own_axes(type), value}));
  unroll.body.push_back(
      ir::make(matile::Store{map->op.name, map->at(row_base, col_base, pool_), y, {}}));
  out.push_back(ir::make(std::move(unroll)));
  return true;
}

NestLowering::PanelLoads NestLowering::panel_loads(const vrtile::Store& op) {
  PanelLoads found;
  std::set<std::string> others;
  const auto look_at = [&](Expr value, const ir::Axes& axes) {
    expr::for_each(value, [&](Expr x) {
      const TileValue* tile = x.op() == EK::Read ? tiles_.find(x.name()) : nullptr;
      if (!tile || tile->kind != Kind::Load || tile->part || (!tile->box_of && !tile->row_piece_of))
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

bool NestLowering::put(const vrtile::Store& op, ir::Block& out) {
  if (op.axes.empty() || op.axes.size() > 2) return refuse("a store writes a tile");
  const expr::Substitution axes = axes_to_own(op.axes);
  Expr value = tiles_.written(op.value, axes, why_);
  if (!value) return false;
  if (value.dtype() != DType::F32 && !is_half(value.dtype()))
    return refuse(fmt::format("elements of {} cannot be stored", expr::name(value.dtype())));
  // A tile with exactly the axes says who stores what.
  ir::TensorType type{DType::F32, {}};
  for (const ir::Axis& a : op.axes) type.dims.push_back(a.extent);
  if (!reads_tile(value, type)) {
    const Expr f32 = value.dtype() == DType::F32 ? value : pool_.cast(DType::F32, value);
    const ir::Name name = new_register(std::string(op.target.str()) + "_out", type);
    out.push_back(ir::make(matile::Set{name, own_axes(type), f32}));
    const std::vector<Expr> own(axis_, axis_ + type.dims.size());
    const Expr read = pool_.read(name, DType::F32, own);
    value = value.dtype() == DType::F32 ? read : pool_.cast(value.dtype(), read);
  }
  matile::Put put;
  put.axes = own_axes(type);
  put.target = op.target;
  put.value = value;
  for (Expr e : op.indices) {
    const Expr index = tiles_.written(e, axes, why_);
    if (!index) return false;
    put.indices.push_back(index);
  }
  if (op.condition) {
    put.condition = tiles_.written(op.condition, axes, why_);
    if (!put.condition) return false;
  }
  out.push_back(ir::make(std::move(put)));
  return true;
}

// Whether some register tile of this shape is read at the op's own axes.
bool NestLowering::reads_tile(Expr value, const ir::TensorType& type) const {
  bool found = false;
  expr::for_each(value, [&](Expr x) {
    if (x.op() != EK::Read || x.args().size() != type.dims.size()) return;
    bool same = is_declared(x.name(), type);
    for (size_t k = 0; k < type.dims.size(); ++k) same &= x[k] == axis_[k];
    found |= same;
  });
  return found;
}

bool NestLowering::is_declared(ir::Name name, const ir::TensorType& type) const {
  return std::any_of(declared_.begin(), declared_.end(), [&](const Op& op) {
    const auto& t = op.as<matile::Tile>();
    return t.name == name && t.type.dims == type.dims;
  });
}

}  // namespace nautilus::lower

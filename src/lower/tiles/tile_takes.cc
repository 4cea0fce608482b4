// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_takes.h"

#include <algorithm>
#include <set>

#include "ir/walk.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Op;
using TileKind = TileValue::Kind;

namespace {

int64_t whole_panels(int64_t cols, int64_t panel) { return (cols + panel - 1) / panel * panel; }

bool is_held(expr::DType d) { return is_half(d) || d == expr::DType::F32; }

bool stores_to(const Op& nest, ir::Name tensor) {
  bool found = false;
  ir::for_each_op({nest}, [&](const Op& op) {
    const auto* s = op.get<vrtile::Store>();
    found |= s && s->target == tensor;
  });
  return found;
}

}  // namespace

bool TileTakes::is_box(const TileValue& value, bool may_turn) {
  if (value.axes.size() != 2 || !is_held(value.value.dtype())) return false;
  if (value.other && !(value.other.is_const() && scope_.is_zero(value.other))) return false;
  const int64_t rows = value.axes[0].extent.integer();
  const int64_t cols = value.axes[1].extent.integer();
  if (rows % scope_.group_rows() != 0 || cols % scope_.target.matrix.depth != 0) return false;
  if (!scope_.tensors.contains(value.value.name().str()) ||
      stores_to(scope_.nest, value.value.name()))
    return false;
  std::string ignored;
  const auto view = view_of(scope_.elements_of(value), pool_, &ignored);
  if (!view || view->row_step != 1) return false;
  if (view->is_transposed && (!may_turn || !is_half(value.value.dtype()))) return false;
  // A copy moves whole panels.
  const int64_t copied = view->is_transposed ? cols : whole_panels(cols, scope_.panel());
  return choices_.is_copied(value.value.name(), cols, copied);
}

bool TileTakes::is_row_piece(const TileValue& value) {
  if (value.axes.size() != 1) return false;
  if (!is_held(value.value.dtype())) return false;
  if (value.other && !(value.other.is_const() && scope_.is_zero(value.other))) return false;
  if (!scope_.tensors.contains(value.value.name().str()) ||
      stores_to(scope_.nest, value.value.name()))
    return false;
  const auto view = row_piece_view_of(scope_.elements_of(value), pool_);
  return view && choices_.is_copied(value.value.name(), view->extent, view->extent);
}

bool TileTakes::take_operands(const std::vector<ir::Name>& used, Expr value, Expr column,
                              ir::Block& out) {
  // All fetches first: what arrives together shares slots and a loading role.
  ir::Block takes;
  for (ir::Name n : used) {
    TileValue* tile = scope_.tiles.find(n);
    if (!tile || tile->kind != TileKind::Load) continue;
    if (tile->box_of == scope_.frames.back().block && !tile->slot_tile &&
        !take_box(n, *tile, scope_.frames.back().at, out))
      return false;
    const bool is_transposed = tile->is_transposed && tile->box_of;
    if (!tile->slot_tile || tile->is_transposed != is_transposed || tile->row_piece_of) continue;
    const ir::TensorType type{tile->value.dtype(), {tile->axes[0].extent, tile->axes[1].extent}};
    // Rows of one register tile only; elements of other operands are read from the tensor.
    if (!type.dims[0].is_int(scope_.group_rows()) ||
        (!tile->box_of && type.dims[1].integer() % scope_.panel() != 0))
      continue;
    tile->kind = TileKind::Register;
    tile->type = type;
    tile->name = scope_.new_register(std::string(n.str()) + "_taken", type);
    takes.push_back(ir::make(matile::Take{tile->name,
                                          tile->slot_tile,
                                          tile->first_row,
                                          {},
                                          is_transposed ? matile::Trans::Yes : matile::Trans::No}));
  }
  if (column) take_row_pieces(value, column, out, takes);
  for (Op& op : takes) out.push_back(std::move(op));
  return true;
}

bool TileTakes::take_box(ir::Name name, TileValue& value, size_t last, ir::Block& out) {
  const int64_t row_bytes = value.axes[1].extent.integer() * expr::bytes(value.value.dtype());
  if (!value.axes[0].extent.is_int(scope_.group_rows()) ||
      !choices_.is_whole(value.value.name(), row_bytes))
    return true;
  const TileElements elements = scope_.elements_of(value);
  const auto view = view_of(elements, pool_, scope_.why);
  if (!view) return false;
  Expr row = view->row_base;
  Expr col = view->col_base;
  int rows = view->rows;
  int cols = view->cols;
  value.is_transposed = view->is_transposed;
  if (view->is_transposed)
    copies_.join_groups(col, cols, 1, value);
  else
    copies_.join_groups(row, rows, view->row_step, value);
  cols = static_cast<int>(whole_panels(cols, scope_.panel()));
  const auto map = copies_.map_for(elements, *view, rows, cols);
  if (!map) return false;
  copies_.fetches(map->op.name, {});
  choices_.took_copied(elements.tensor);
  value.slot_tile = copies_.slot_tile_for(name, map->op, rows, cols, last);
  out.push_back(ir::make(matile::Fetch{value.slot_tile, map->op.name, map->at(row, col, pool_)}));
  return true;
}

ir::Name TileTakes::take_panel(ir::Name name, const TileValue& value, Expr row_offset,
                               Expr col_offset, ir::Block& out, ir::Block& takes) {
  const TileElements elements = scope_.elements_of(value);
  const auto view = view_of(elements, pool_, scope_.why);
  const auto map =
      view ? copies_.map_for(elements, *view, scope_.group_rows(), scope_.panel()) : std::nullopt;
  if (!map) return {};
  copies_.fetches(map->op.name, {});
  choices_.took_copied(elements.tensor);
  const auto shifted = [&](Expr base, Expr offset) {
    return !offset ? base : base.is_int(0) ? offset : pool_.binary(expr::Op::Add, base, offset);
  };
  const ir::Name slot_tile = copies_.slot_tile_for(name, map->op, scope_.group_rows(),
                                                   scope_.panel(), scope_.frames.back().at);
  out.push_back(ir::make(matile::Fetch{
      slot_tile, map->op.name,
      map->at(shifted(view->row_base, row_offset), shifted(view->col_base, col_offset), pool_)}));
  const ir::TensorType type{value.value.dtype(),
                            {pool_.integer(scope_.group_rows()), pool_.integer(scope_.panel())}};
  const ir::Name taken = scope_.new_register(std::string(name.str()) + "_taken", type);
  takes.push_back(ir::make(matile::Take{taken, slot_tile, {}, {}, {}}));
  return taken;
}

ir::Name TileTakes::fetch_row_piece(ir::Name name, const TileValue& value, size_t last,
                                    ir::Block& out) {
  const TileElements elements = scope_.elements_of(value);
  const auto view = row_piece_view_of(elements, pool_);
  const RowPieceMap map = copies_.row_piece_map_for(elements, *view);
  copies_.fetches(map.op.name, {});
  choices_.took_copied(elements.tensor);
  const ir::Name slot_tile = copies_.slot_tile_for(name, map.op, 1, view->extent, last);
  out.push_back(ir::make(matile::Fetch{slot_tile, map.op.name, map.at}));
  return slot_tile;
}

ir::Name TileTakes::take_row_piece(ir::Name name, ir::Name slot_tile, int64_t extent, Expr cols,
                                   ir::Block& out) {
  const ir::Name taken = scope_.names.make(std::string(name.str()) + "_taken");
  const ir::TensorType type{expr::DType::F32, {pool_.integer(extent)}};
  scope_.declared.push_back(ir::make(matile::Tile{taken, type, matile::Spread::Col, {}}));
  out.push_back(ir::make(matile::Take{taken, slot_tile, {}, cols, {}}));
  return taken;
}

void TileTakes::take_row_pieces(Expr value, Expr column, ir::Block& out, ir::Block& takes) {
  std::vector<ir::Name> found;
  std::set<std::string> others;
  expr::for_each(value, [&](Expr x) {
    const TileValue* tile = x.op() == expr::Op::Read ? scope_.tiles.find(x.name()) : nullptr;
    if (!tile || tile->kind != TileKind::Load || tile->row_piece_of != scope_.frames.back().block)
      return;
    if (std::find(found.begin(), found.end(), x.name()) == found.end()) found.push_back(x.name());
    if (x[0] != column) others.emplace(x.name().str());
  });
  for (ir::Name n : found) {
    if (others.contains(std::string(n.str()))) continue;
    TileValue& tile = *scope_.tiles.find(n);
    const int64_t extent = tile.axes[0].extent.integer();
    tile.type = {expr::DType::F32, {tile.axes[0].extent}};
    const ir::Name slot_tile =
        tile.slot_tile ? tile.slot_tile : fetch_row_piece(n, tile, scope_.frames.back().at, out);
    tile.name = take_row_piece(n, slot_tile, extent, {}, takes);
    tile.kind = TileKind::Register;
  }
}

}  // namespace nautilus::lower

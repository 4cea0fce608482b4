// SPDX-License-Identifier: Apache-2.0
// Tiles of tensors that element-wise work uses.
//
// A box of a tensor arrives as operands of products do, by the copy engine into shared memory, and
// goes to registers where it is used:
//
//   load r[i < 64, j < 128] = R[64 * m + i, 128 * n + j] when ... else 0.0
//   set y[i < 64, j < 128] = x[i, j] + f32(r[i, j])
// becomes
//   fetch r_part from R_map[128 * n, 64 * m]
//   take r_taken from r_part
//   set y[i < 64, j < 128] = x[i, j] + f32(r_taken[i, j])
//
// A piece of one row that is used along columns arrives the same way. Before a store by panels
// boxes are copied panel by panel, a piece of a row at once.
//
// Outside the tensor a copy is 0, so conditions that only keep a load inside are gone. What is
// no such box, or is transposed, or has elements that registers do not hold in this layout, is read
// element by element where it is used.
#include <fmt/format.h>

#include <algorithm>

#include "ir/walk.h"
#include "lower/tiles/tile_lowering.h"
#include "vrtile/walk.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Op;
using Kind = TileValue::Kind;

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

TileElements NestLowering::elements_of(const TileValue& value) const {
  return {&target_.copies,
          value.value.name(),
          tensors_.find(value.value.name().str())->second,
          {value.value.args().begin(), value.value.args().end()},
          value.axes,
          value.condition,
          &divisors_};
}

bool NestLowering::is_box(const TileValue& value) {
  if (value.axes.size() != 2 || !is_held(value.value.dtype())) return false;
  if (value.other && !(value.other.is_const() && is_zero(value.other))) return false;
  const int64_t rows = value.axes[0].extent.integer();
  const int64_t cols = value.axes[1].extent.integer();
  // A copy moves whole panels; one that is mostly padding costs more than it saves.
  if (rows % group_rows() != 0 || cols % target_.matrix.depth != 0 ||
      2 * cols <= whole_panels(cols, panel()))
    return false;
  if (!tensors_.contains(value.value.name().str()) || stores_to(nest_, value.value.name()))
    return false;
  std::string ignored;
  const auto view = view_of(elements_of(value), pool_, &ignored);
  return view && !view->is_transposed && is_copied(value.value.name());
}

bool NestLowering::take_operands(const std::vector<ir::Name>& used, Expr value, Expr column,
                                 ir::Block& out) {
  // All fetches first: what arrives together shares slots and a loading role.
  ir::Block takes;
  for (ir::Name n : used) {
    TileValue* tile = tiles_.find(n);
    if (!tile || tile->kind != Kind::Load) continue;
    if (tile->box_of == frames_.back().block && !tile->part &&
        !take_box(n, *tile, frames_.back().at, out))
      return false;
    if (!tile->part || tile->is_transposed || tile->row_piece_of) continue;
    const ir::TensorType type{tile->value.dtype(), {tile->axes[0].extent, tile->axes[1].extent}};
    // Rows of one register tile only; elements of other operands are read from the tensor.
    if (!type.dims[0].is_int(group_rows()) ||
        (!tile->box_of && type.dims[1].integer() % panel() != 0))
      continue;
    tile->kind = Kind::Register;
    tile->type = type;
    tile->name = new_register(std::string(n.str()) + "_taken", type);
    takes.push_back(ir::make(matile::Take{tile->name, tile->part, tile->first_row, {}}));
  }
  if (column) take_row_pieces(value, column, out, takes);
  for (Op& op : takes) out.push_back(std::move(op));
  return true;
}

bool NestLowering::take_box(ir::Name name, TileValue& value, size_t last, ir::Block& out) {
  const int64_t row_bytes = value.axes[1].extent.integer() * expr::bytes(value.value.dtype());
  if (!value.axes[0].extent.is_int(group_rows()) || row_bytes > target_.tiles.taken_bytes)
    return true;
  const TileElements elements = elements_of(value);
  const auto view = view_of(elements, pool_, why_);
  if (!view) return false;
  Expr row = view->row_base;
  int rows = view->rows;
  join_groups(row, rows, value);
  const int cols = static_cast<int>(whole_panels(view->cols, panel()));
  const auto map = map_for(elements, *view, rows, cols);
  if (!map) return false;
  promotes(map->op.name, false);
  choices_.bring.took({elements.tensor, OperandPath::Copied, {}});
  value.part = part_for(name, map->op, rows, cols, last);
  out.push_back(
      ir::make(matile::Fetch{value.part, map->op.name, map->at(row, view->col_base, pool_)}));
  return true;
}

ir::Name NestLowering::take_panel(ir::Name name, const TileValue& value, Expr row_offset,
                                  Expr col_offset, ir::Block& out, ir::Block& takes) {
  const TileElements elements = elements_of(value);
  const auto view = view_of(elements, pool_, why_);
  const auto map = view ? map_for(elements, *view, group_rows(), panel()) : std::nullopt;
  if (!map) return {};
  promotes(map->op.name, false);
  choices_.bring.took({elements.tensor, OperandPath::Copied, {}});
  const auto shifted = [&](Expr base, Expr offset) {
    return !offset ? base : base.is_int(0) ? offset : pool_.binary(expr::Op::Add, base, offset);
  };
  const ir::Name part = part_for(name, map->op, group_rows(), panel(), frames_.back().at);
  out.push_back(ir::make(matile::Fetch{
      part, map->op.name,
      map->at(shifted(view->row_base, row_offset), shifted(view->col_base, col_offset), pool_)}));
  const ir::TensorType type{value.value.dtype(),
                            {pool_.integer(group_rows()), pool_.integer(panel())}};
  const ir::Name taken = new_register(std::string(name.str()) + "_taken", type);
  takes.push_back(ir::make(matile::Take{taken, part, {}, {}}));
  return taken;
}

bool NestLowering::has_one_computed_product(const ir::Block& body) {
  const vrtile::Dot* product = nullptr;
  std::set<std::string> loaded;
  for (const Op& op : body) {
    if (const auto* l = op.get<vrtile::Load>()) loaded.emplace(l->name.str());
    // Where loads begin may depend on scalars of the loop, which stay where they are.
    if (op.is<vrtile::Let>() || op.is<vrtile::For>() || (op.is<vrtile::Dot>() && product))
      return false;
    if (const auto* d = op.get<vrtile::Dot>()) product = d;
  }
  return product && !loaded.contains(std::string(product->a.str()));
}

ir::Block NestLowering::loads_first(const ir::Block& body) {
  ir::Block out = body;
  std::stable_partition(out.begin(), out.end(), [](const Op& op) {
    return op.is<vrtile::Carry>() || op.is<vrtile::Load>();
  });
  return out;
}

bool NestLowering::is_eager() const {
  return !reordered_.empty() && frames_.back().block == &reordered_.back();
}

bool NestLowering::runs_along_columns(ir::Name line, const ir::Block& body) const {
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

bool NestLowering::is_row_piece(const TileValue& value) {
  if (value.axes.size() != 1) return false;
  if (!is_held(value.value.dtype())) return false;
  if (value.other && !(value.other.is_const() && is_zero(value.other))) return false;
  if (!tensors_.contains(value.value.name().str()) || stores_to(nest_, value.value.name()))
    return false;
  return row_piece_view_of(elements_of(value), pool_).has_value() && is_copied(value.value.name());
}

ir::Name NestLowering::fetch_row_piece(ir::Name name, const TileValue& value, size_t last,
                                       ir::Block& out) {
  const TileElements elements = elements_of(value);
  const auto view = row_piece_view_of(elements, pool_);
  RowPieceMap map = row_piece_map_of(elements, *view, names_, pool_);
  const std::string key = fmt::format("{} {}", elements.tensor.str(), view->extent);
  const auto [known, is_new] = row_piece_maps_.emplace(key, map.op);
  if (is_new) map_ops_.push_back(ir::make(map.op));
  promotes(known->second.name, false);
  choices_.bring.took({elements.tensor, OperandPath::Copied, {}});
  const ir::Name part = part_for(name, known->second, 1, view->extent, last);
  out.push_back(ir::make(matile::Fetch{part, known->second.name, map.at}));
  return part;
}

ir::Name NestLowering::take_row_piece(ir::Name name, ir::Name part, int64_t extent, Expr cols,
                                      ir::Block& out) {
  const ir::Name taken = names_.make(std::string(name.str()) + "_taken");
  const ir::TensorType type{expr::DType::F32, {pool_.integer(extent)}};
  declared_.push_back(ir::make(matile::Tile{taken, type, matile::Spread::Col, {}}));
  out.push_back(ir::make(matile::Take{taken, part, {}, cols}));
  return taken;
}

void NestLowering::take_row_pieces(Expr value, Expr column, ir::Block& out, ir::Block& takes) {
  std::vector<ir::Name> found;
  std::set<std::string> others;
  expr::for_each(value, [&](Expr x) {
    const TileValue* tile = x.op() == expr::Op::Read ? tiles_.find(x.name()) : nullptr;
    if (!tile || tile->kind != Kind::Load || tile->row_piece_of != frames_.back().block) return;
    if (std::find(found.begin(), found.end(), x.name()) == found.end()) found.push_back(x.name());
    if (x[0] != column) others.emplace(x.name().str());
  });
  for (ir::Name n : found) {
    if (others.contains(std::string(n.str()))) continue;
    TileValue& tile = *tiles_.find(n);
    const int64_t extent = tile.axes[0].extent.integer();
    tile.type = {expr::DType::F32, {tile.axes[0].extent}};
    const ir::Name part = tile.part ? tile.part : fetch_row_piece(n, tile, frames_.back().at, out);
    tile.name = take_row_piece(n, part, extent, {}, takes);
    tile.kind = Kind::Register;
  }
}

}  // namespace nautilus::lower

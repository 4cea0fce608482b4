// SPDX-License-Identifier: Apache-2.0
#include "lower/tiles/tile_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/print.h"

namespace nautilus::lower {

using expr::Expr;
using ir::Op;
using EK = expr::Op;

std::optional<TileMap> TileCopies::map_for(const TileElements& elements, const TileView& view,
                                           int rows, int cols) {
  const auto text = [](Expr e) { return e ? expr::to_string(e) : std::string("-"); };
  std::string key =
      fmt::format("{} {} {} {} {}, {}, {}", elements.tensor.str(), view.row_dim, rows, cols,
                  text(view.block_rows), text(view.row_end), text(view.col_end));
  if (const auto it = maps_.find(key); it != maps_.end()) {
    TileMap map = it->second;
    map.rest = rest_of(view);
    if (!map.has_panels) return map;
    const auto p = expr::Poly::of(view.col_base);
    const auto panel = p ? expr::divide(*p, map.panel_cols) : std::nullopt;
    if (panel && p->constant_term() % map.panel_cols == 0) return map;
    return scope_.fail("its first column is not that of a panel");
  }
  auto map = map_of(elements, view, {rows, cols}, scope_.names, pool_, scope_.why);
  if (!map) return std::nullopt;
  map_ops_.push_back(ir::make(map->op));
  maps_.emplace(std::move(key), *map);
  return map;
}

RowPieceMap TileCopies::row_piece_map_for(const TileElements& elements, const RowPieceView& view) {
  RowPieceMap map = row_piece_map_of(elements, view, scope_.names, pool_);
  const std::string key = fmt::format("{} {}", elements.tensor.str(), view.extent);
  const auto [known, is_new] = row_piece_maps_.emplace(key, map.op);
  if (is_new) map_ops_.push_back(ir::make(map.op));
  map.op = known->second;
  return map;
}

ir::Name TileCopies::slot_tile_for(ir::Name load, const matile::Map& map, int rows, int cols,
                                   size_t last) {
  const std::pair<const ir::Block*, size_t> use{scope_.frames.back().block, last};
  for (SlotTileUse& slot_tile : slot_tile_uses_) {
    if (slot_tile.map != map.name.str()) continue;
    const bool is_busy =
        std::any_of(slot_tile.busy.begin(), slot_tile.busy.end(), [&](const auto& b) {
          return std::any_of(scope_.frames.begin(), scope_.frames.end(), [&](const NestFrame& f) {
            return f.block == b.first && f.at <= b.second;
          });
        });
    if (is_busy) continue;
    slot_tile.busy.push_back(use);
    return slot_tile.name;
  }
  const ir::Name name = scope_.names.make(std::string(load.str()) + "_part");
  slot_tile_uses_.push_back({name, std::string(map.name.str()), {use}});
  const ir::TensorType type{map.value.dtype(), {pool_.integer(rows), pool_.integer(cols)}};
  slot_tiles_.push_back(ir::make(matile::SlotTile{name, type, map.swizzle}));
  return name;
}

void TileCopies::join_groups(Expr& row, int& rows, int row_step, TileValue& value) {
  if (!scope_.own_group || !expr::depends_on(row, scope_.own_group) ||
      rows != scope_.group_rows() ||
      (scope_.groups * rows - 1) * row_step >= scope_.target.copies.box_extent)
    return;
  const Expr first = simplifier_.simplify(
      expr::substitute(pool_, row, expr::Substitution{{scope_.own_group, pool_.integer(0)}}));
  const auto difference = expr::difference(row, first);
  const Expr own_rows = pool_.binary(EK::Mul, pool_.integer(rows), scope_.own_group);
  const Expr apart = pool_.binary(EK::Mul, pool_.integer(row_step), own_rows);
  if (!difference || !(*difference == *expr::Poly::of(apart))) return;
  row = first;
  rows *= static_cast<int>(scope_.groups);
  value.first_row = own_rows;
}

void TileCopies::fetches(ir::Name map, const CopyFacts& facts) {
  CopyFacts& known = copies_.emplace(map.str(), facts).first->second;
  known.is_read_once |= facts.is_read_once;
  if (facts.piece_bytes)
    known.piece_bytes =
        std::min(*facts.piece_bytes, known.piece_bytes.value_or(*facts.piece_bytes));
  known.has_cluster = scope_.has_cluster;
}

void TileCopies::write_promotions() {
  std::map<std::string, int> places;
  for (Op& op : map_ops_) {
    matile::Map map = op.as<matile::Map>();
    const auto known = copies_.find(std::string(map.name.str()));
    if (known == copies_.end()) continue;
    const std::string tensor(map.value.name().str());
    const int place = ++places[tensor];
    const ir::Name operand = pool_.name(place == 1 ? tensor : fmt::format("{}.{}", tensor, place));
    const int64_t bytes = choices_.promoted_bytes(operand, known->second);
    const std::vector<int>& all = scope_.target.memory.promotions;
    if (std::find(all.begin(), all.end(), bytes) == all.end())
      choices_.promote.refuse(operand,
                              fmt::format("a miss brings one of {} bytes", fmt::join(all, ", ")));
    if (bytes != scope_.target.memory.promote_bytes) map.promote = bytes;
    choices_.promote.took({operand, bytes, {}});
    copied_.emplace(operand.str());
    op = ir::make(std::move(map));
  }
}

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest_tiles.h"

namespace nautilus::schedule {

using expr::DType;
using scalar::For;
using scalar::LoopKind;

LocalTile NestTiles::make(std::string_view stem, DType dtype, std::vector<Expr> axes) {
  scalar::Buffer b{fresh_name(stem), {dtype, {}}, scalar::Role::Local};
  for (Expr a : axes) b.type.dims.push_back(pool_.integer(extent_of(a)));
  buffers_.push_back(b);
  return {b.name, std::move(axes)};
}

Expr NestTiles::read(const LocalTile& tile, DType dtype) {
  return pool_.read(tile.name, dtype, tile.axes);
}

void NestTiles::emit_store(ir::Block& out, const LocalTile& tile, Expr value) {
  For loop{lanes(tile.axes), LoopKind::Map, {}};
  loop.body.push_back(ir::make(scalar::Store{tile.name, tile.axes, value}));
  out.push_back(ir::make(std::move(loop)));
}

void NestTiles::emit_reduction(ir::Block& out, const LocalTile& tile, Expr init, Expr axis,
                               expr::Reducer reducer, Expr value) {
  For loop{lanes(tile.axes), LoopKind::Map, {}};
  if (init) loop.body.push_back(ir::make(scalar::Init{tile.name, tile.axes, init}));
  if (value) {
    For reduce{lanes({axis}), LoopKind::Reduce, {}};
    reduce.body.push_back(ir::make(scalar::Update{tile.name, tile.axes, reducer, value}));
    loop.body.push_back(ir::make(std::move(reduce)));
  }
  out.push_back(ir::make(std::move(loop)));
}

void NestTiles::emit_result(ir::Block& out, ir::Name target, const ir::Exprs& indices, Expr value,
                            Expr condition, const std::vector<Expr>& axes) {
  ir::Op store = ir::make(scalar::Store{target, indices, value});
  For loop{lanes(axes), LoopKind::Map, {}};
  if (condition) {
    loop.body.push_back(ir::make(scalar::If{condition, {store}}));
  } else {
    loop.body.push_back(store);
  }
  out.push_back(ir::make(std::move(loop)));
}

int64_t NestTiles::extent_of(Expr axis) const {
  const TileAxis& t = tiling_.at(axis);
  return t.kind == AxisKind::Row ? sizes_.rows : t.size;
}

ir::Axes NestTiles::lanes(const std::vector<Expr>& axes) {
  ir::Axes out;
  for (Expr a : axes) out.push_back({a.name(), pool_.integer(extent_of(a))});
  return out;
}

}  // namespace nautilus::schedule

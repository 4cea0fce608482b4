// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/tiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/bounds/affine.h"
#include "schedule/fusion/tile_use.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

// Instructions work on multiples of this along the depth.
int64_t grain(const Fusion& fusion) { return fusion.target->matrix.depth; }

int64_t rounded_up(int64_t n, int64_t grain) { return (n + grain - 1) / grain * grain; }

Expr steps_along(Expr extent, int64_t step, expr::ExprPool& pool) {
  if (extent.op() == Op::IntConst) return pool.integer((extent.integer() + step - 1) / step);
  const Expr end = pool.binary(Op::Add, extent, pool.integer(step - 1));
  return pool.binary(Op::FloorDiv, expr::canonical_index(pool, end), pool.integer(step));
}

// A number of places to divide by.
Expr radix(Expr places, expr::ExprPool& pool) {
  if (places.op() == Op::IntConst) return pool.integer(std::max<int64_t>(places.integer(), 1));
  return pool.binary(Op::Max, places, pool.integer(1));
}

bool has_other_rolled(const Fusion& fusion) {
  for (size_t k = 0; k < fusion.members.size(); ++k) {
    if (fusion.members[k].is_rolled && !fusion.dot_of(k)) return true;
  }
  return false;
}

}  // namespace

Expr count_steps(const Fusion& fusion, int64_t step, expr::ExprPool& pool) {
  Expr count = steps_along(fusion.extents.at(fusion.stream), step, pool);
  for (Expr a : fusion.outer) count = pool.binary(Op::Mul, fusion.extents.at(a), count);
  return fusion.outer.empty() ? count : expr::canonical_index(pool, count);
}

std::string Names::fresh(std::string_view wish) {
  std::string name(wish);
  for (int n = 2; variables.contains(name) || !buffers.insert(ir::flat_name(name)).second; ++n)
    name = fmt::format("{}_{}", wish, n);
  return name;
}

Tiling::Tiling(const Fusion& fusion, const TileConfig& sizes, expr::ExprPool& pool, Names& names)
    : group_rows_(sizes.rows) {
  std::set<std::string, std::less<>> taken = names.buffers;
  for (Expr a : fusion.axis_order) {
    taken.insert(std::string(a.name().str()));
    names.variables.insert(std::string(a.name().str()));
  }
  auto fresh = [&](std::string name) {
    const std::string stem = name;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", stem, n);
    names.variables.insert(name);
    return pool.index(name);
  };
  auto scaled = [&](int64_t factor, Expr x) {
    return factor == 1 ? x : pool.binary(Op::Mul, x, pool.integer(factor));
  };
  for (Expr a : fusion.axis_order) {
    TileAxis t;
    t.var = a;
    t.extent = fusion.extents.at(a);
    const bool is_const = t.extent.op() == Op::IntConst;
    if (a == fusion.row) {
      t.kind = AxisKind::Row;
      t.size = fusion.row_block > 0 ? fusion.row_block : sizes.rows * sizes.warp_groups;
      t.tile = fresh(fmt::format("{}0", a.name().str()));
      first_row_ = scaled(t.size, t.tile);
      if (fusion.row_block > 0 && fusion.block_rows.op() != Op::IntConst)
        first_row_ = pool.binary(Op::Mul, t.tile, fusion.block_rows);
      if (sizes.warp_groups > 1) {
        group_var_ = fresh("w");
        first_row_ = pool.binary(Op::Add, first_row_, scaled(sizes.rows, group_var_));
      }
      t.position = pool.binary(Op::Add, first_row_, a);
    } else if (a == fusion.stream) {
      t.kind = AxisKind::Stream;
      t.size = sizes.step;
      const bool is_one = is_const && t.extent.integer() <= sizes.step;
      // A single step is not longer than necessary: `X[h * 32 + d]` continues beyond it.
      if (is_one) t.size = std::max(rounded_up(t.extent.integer(), grain(fusion)), grain(fusion));
      if (is_one && fusion.outer.empty()) {
        has_loop_ = false;
        t.position = a;
      } else {
        t.tile = fresh(fmt::format("{}0", a.name().str()));
        Expr step = t.tile;
        if (!fusion.outer.empty())
          step = pool.binary(Op::Mod, step, radix(steps_along(t.extent, t.size, pool), pool));
        t.position = is_one ? a : pool.binary(Op::Add, scaled(t.size, step), a);
      }
    } else if (fusion.is_outer(a)) {
      t.kind = AxisKind::Outer;  // its position follows when the streamed axis has one
    } else if (!fusion.is_tile_axis(a)) {
      t.kind = AxisKind::Batch;
      t.position = a;
    } else if (fusion.is_whole(a)) {
      t.kind = AxisKind::Whole;
      t.size = rounded_up(t.extent.integer(), grain(fusion));
      t.position = a;
    } else {
      t.kind = AxisKind::Cut;
      t.size = sizes.column;
      t.tile = fresh(fmt::format("{}0", a.name().str()));
      t.position = pool.binary(Op::Add, scaled(t.size, t.tile), a);
    }
    const bool is_block = t.kind == AxisKind::Row && fusion.row_block > 0;
    if (is_block && !fusion.block_rows.is_int(fusion.target->matrix.rows))
      t.in_range = pool.binary(Op::Lt, a, fusion.block_rows);
    if (t.kind != AxisKind::Batch && t.kind != AxisKind::Outer && !is_block &&
        !(is_const && t.extent.integer() % t.size == 0))
      t.in_range = pool.binary(Op::Lt, t.position, t.extent);
    axes_.emplace(a, t);
    order_.push_back(a);
  }
  // The number of a step has the places of the outer axes as digits, the last one fastest.
  if (fusion.outer.empty()) return;
  Expr rest = at(fusion.stream).tile;
  Expr places = radix(steps_along(fusion.extents.at(fusion.stream), sizes.step, pool), pool);
  for (size_t k = fusion.outer.size(); k-- > 0;) {
    TileAxis& t = axes_.at(fusion.outer[k]);
    if (!places.is_int(1)) rest = pool.binary(Op::FloorDiv, rest, places);
    places = radix(t.extent, pool);
    t.position = k == 0 ? rest : pool.binary(Op::Mod, rest, places);
    // The one step that the loop always has reads nothing if an axis is empty.
    if (t.extent.op() == Op::IntConst && t.extent.integer() >= 1) continue;
    t.in_range = pool.binary(Op::Lt, t.position, t.extent);
    // Contractions get zeros from their tensors; other reductions ask the streamed axis.
    TileAxis& stream = axes_.at(fusion.stream);
    if (has_other_rolled(fusion))
      stream.in_range =
          stream.in_range ? pool.binary(Op::And, stream.in_range, t.in_range) : t.in_range;
  }
}

void Tiling::take_steps_from(Expr axis, Expr listed, expr::ExprPool& pool) {
  TileAxis& t = axes_.at(axis);
  const expr::Substitution step = {{t.tile, listed}};
  t.position = expr::substitute(pool, t.position, step);
  t.in_range = pool.binary(Op::Lt, t.position, t.extent);
}

void Tiling::guard(Expr axis, expr::ExprPool& pool) {
  TileAxis& t = axes_.at(axis);
  t.in_range = pool.binary(Op::Lt, t.position, t.extent);
}

TileConfig least_sizes(const Target& target) {
  TileConfig s;
  s.rows = target.matrix.rows;
  s.step = target.tiles.step;
  return s;
}

TileConfig choose_sizes(const Fusion& fusion) {
  const target::Tiles& tiles = fusion.target->tiles;
  const target::Matrix& matrix = fusion.target->matrix;
  TileConfig best = least_sizes(*fusion.target);
  const FusionShape shape = shape_of(fusion);
  const Expr rows = fusion.extents.at(fusion.row);
  const bool is_small = rows.op() == Op::IntConst;
  const int64_t most_groups =
      fusion.row_block > 0 ? 1
      : is_small ? std::clamp<int64_t>((rows.integer() + matrix.rows - 1) / matrix.rows, 1,
                                       tiles.usual_groups)
                 : tiles.usual_groups;
  if (shape.has_cut) best.column = shape.sums > 1 ? matrix.most_columns / 2 : matrix.most_columns;
  // Lines of tensors are not counted, and products alone have no more registers than others: these
  // sizes are only the ones tried first.
  const auto fits = [&](const TileConfig& s) {
    const TileRegisters held = tile_registers(fusion, s);
    return held.sums + held.step <= most_tile_registers(fusion, s, true);
  };
  const auto with_fewer_columns = [&](int64_t groups) {
    TileConfig alone = best;
    alone.warp_groups = 1;
    while (alone.column > tiles.columns.back() && !fits(alone)) alone.column /= 2;
    alone.warp_groups = groups;
    return alone;
  };
  if (!shape.has_streamed_tile)
    return with_fewer_columns(std::min(most_groups, tiles.product_groups));
  for (int64_t groups = most_groups; groups > 0; --groups) {
    for (const int64_t step : tiles.usual_steps) {
      TileConfig s = best;
      s.warp_groups = groups;
      s.step = step;
      if (fits(s)) return s;
    }
  }
  return with_fewer_columns(1);
}

}  // namespace nautilus::schedule

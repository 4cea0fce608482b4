// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/tiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "expr/bounds/affine.h"
#include "schedule/fusion/tile_use.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::Op;

namespace {

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

// Axes of a fusion as they are written inside a kernel.
class AxisMaker {
 public:
  AxisMaker(const Fusion& fusion, const TileConfig& sizes, expr::ExprPool& pool, Names& names)
      : fusion_(fusion), sizes_(sizes), pool_(pool), names_(names), taken_(names.buffers) {
    for (Expr a : fusion.axis_order) {
      taken_.insert(std::string(a.name().str()));
      names_.variables.insert(std::string(a.name().str()));
    }
  }

  TileAxis axis(Expr a) {
    TileAxis t;
    t.var = a;
    t.extent = fusion_.extents.at(a);
    if (a == fusion_.row) {
      make_row(t);
    } else if (a == fusion_.stream) {
      make_stream(t);
    } else if (fusion_.is_outer(a)) {
      t.kind = AxisKind::Outer;  // its position follows when the streamed axis has one
    } else if (!fusion_.is_tile_axis(a)) {
      t.kind = AxisKind::Batch;
      t.position = a;
    } else if (fusion_.is_whole(a)) {
      t.kind = AxisKind::Whole;
      t.size = rounded_up(t.extent.integer(), fusion_.depth_grain());
      t.position = a;
    } else {
      t.kind = AxisKind::Cut;
      t.size = sizes_.column;
      t.tile = number_of(a);
      t.position = pool_.binary(Op::Add, scaled(t.size, t.tile), a);
    }
    const bool is_block = t.kind == AxisKind::Row && fusion_.row_block > 0;
    if (is_block && !fusion_.block_rows.is_int(fusion_.target->matrix.rows))
      t.in_range = pool_.binary(Op::Lt, a, fusion_.block_rows);
    if (t.kind != AxisKind::Batch && t.kind != AxisKind::Outer && !is_block &&
        !(t.extent.op() == Op::IntConst && t.extent.integer() % t.size == 0))
      t.in_range = pool_.binary(Op::Lt, t.position, t.extent);
    return t;
  }

  Expr group_var;  // null: one group
  Expr first_row;
  bool has_loop = true;

 private:
  Expr fresh(std::string name) {
    const std::string stem = name;
    for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", stem, n);
    names_.variables.insert(name);
    return pool_.index(name);
  }
  // Of the tile or step along an axis.
  Expr number_of(Expr axis) { return fresh(fmt::format("{}0", axis.name().str())); }
  Expr scaled(int64_t factor, Expr x) {
    return factor == 1 ? x : pool_.binary(Op::Mul, x, pool_.integer(factor));
  }

  void make_row(TileAxis& t) {
    t.kind = AxisKind::Row;
    t.size = fusion_.row_block > 0 ? fusion_.row_block : sizes_.rows * sizes_.warp_groups;
    t.tile = number_of(t.var);
    first_row = scaled(t.size, t.tile);
    if (fusion_.row_block > 0 && fusion_.block_rows.op() != Op::IntConst)
      first_row = pool_.binary(Op::Mul, t.tile, fusion_.block_rows);
    if (sizes_.warp_groups > 1) {
      group_var = fresh("w");
      first_row = pool_.binary(Op::Add, first_row, scaled(sizes_.rows, group_var));
    }
    t.position = pool_.binary(Op::Add, first_row, t.var);
  }

  void make_stream(TileAxis& t) {
    t.kind = AxisKind::Stream;
    t.size = sizes_.step;
    const bool is_one = t.extent.op() == Op::IntConst && t.extent.integer() <= sizes_.step;
    // The only step is no longer than it needs to be: `X[h * 32 + d]` goes on beyond it.
    if (is_one) t.size = *longest_step(fusion_);
    if (is_one && fusion_.outer.empty()) {
      has_loop = false;
      t.position = t.var;
      return;
    }
    t.tile = number_of(t.var);
    Expr step = t.tile;
    if (!fusion_.outer.empty())
      step = pool_.binary(Op::Mod, step, radix(steps_along(t.extent, t.size, pool_), pool_));
    t.position = is_one ? t.var : pool_.binary(Op::Add, scaled(t.size, step), t.var);
  }

  const Fusion& fusion_;
  const TileConfig& sizes_;
  expr::ExprPool& pool_;
  Names& names_;
  std::set<std::string, std::less<>> taken_;
};

// The number of a step has the places of the outer axes as digits, the last one fastest.
void place_outer(const Fusion& fusion, const TileConfig& sizes, expr::ExprPool& pool,
                 std::unordered_map<Expr, TileAxis>& axes) {
  TileAxis& stream = axes.at(fusion.stream);
  Expr rest = stream.tile;
  Expr places = radix(steps_along(fusion.extents.at(fusion.stream), sizes.step, pool), pool);
  for (size_t k = fusion.outer.size(); k-- > 0;) {
    TileAxis& t = axes.at(fusion.outer[k]);
    if (!places.is_int(1)) rest = pool.binary(Op::FloorDiv, rest, places);
    places = radix(t.extent, pool);
    t.position = k == 0 ? rest : pool.binary(Op::Mod, rest, places);
    // The one step that the loop always has reads nothing if an axis is empty.
    if (t.extent.op() == Op::IntConst && t.extent.integer() >= 1) continue;
    t.in_range = pool.binary(Op::Lt, t.position, t.extent);
    // Contractions get zeros from their tensors; other reductions ask the streamed axis.
    if (has_other_rolled(fusion))
      stream.in_range =
          stream.in_range ? pool.binary(Op::And, stream.in_range, t.in_range) : t.in_range;
  }
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
  AxisMaker maker(fusion, sizes, pool, names);
  for (Expr a : fusion.axis_order) {
    axes_.emplace(a, maker.axis(a));
    order_.push_back(a);
  }
  group_var_ = maker.group_var;
  first_row_ = maker.first_row;
  has_loop_ = maker.has_loop;
  if (!fusion.outer.empty()) place_outer(fusion, sizes, pool, axes_);
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

std::optional<int64_t> longest_step(const Fusion& fusion) {
  const Expr extent = fusion.extents.at(fusion.stream);
  if (extent.op() != Op::IntConst) return std::nullopt;
  const int64_t grain = fusion.depth_grain();
  return std::max(rounded_up(extent.integer(), grain), grain);
}

int64_t scaled_step(const Fusion& fusion, int64_t step) {
  int64_t widest = 0;
  for (const Dot& d : fusion.dots) {
    if (d.depth == fusion.stream) widest = std::max<int64_t>(widest, d.operand_bytes());
  }
  return widest == 0 ? step : step * expr::bytes(expr::DType::BF16) / widest;
}

TileConfig least_sizes(const Fusion& fusion) {
  TileConfig s;
  s.rows = fusion.target->matrix.rows;
  s.step = scaled_step(fusion, fusion.target->tiles.step);
  if (const int64_t block = fusion.step_block()) s.step = std::gcd(s.step, block);
  return s;
}

bool is_step(const Fusion& fusion, int64_t step) {
  const int64_t apart = fusion.apart_depth();
  return step > 0 && step % fusion.depth_grain() == 0 && fusion.step_block() % step == 0 &&
         (apart == 0 || step <= apart);
}

TileConfig choose_sizes(const Fusion& fusion) {
  const target::Tiles& tiles = fusion.target->tiles;
  const target::Matrix& matrix = fusion.target->matrix;
  TileConfig best = least_sizes(fusion);
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
      if (is_step(fusion, step) && fits(s)) return s;
    }
  }
  return with_fewer_columns(1);
}

}  // namespace nautilus::schedule

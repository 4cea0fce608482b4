// SPDX-License-Identifier: Apache-2.0
#include "schedule/live_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/affine.h"
#include "expr/quotient.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "schedule/mask_intervals.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using expr::Reducer;

Expr tile_count(const Group& group, const TileAxis& t, expr::ExprPool& pool) {
  if (t.kind == AxisKind::Row && group.row_block > 0) {
    return expr::exact_quotient(pool, t.extent, group.block_rows);
  }
  if (t.extent.op() == Op::IntConst)
    return pool.integer((t.extent.integer() + t.size - 1) / t.size);
  return pool.binary(Op::FloorDiv, pool.binary(Op::Add, t.extent, pool.integer(t.size - 1)),
                     pool.integer(t.size));
}

namespace {

class Prepass {
 public:
  // `tiles`: of rows.
  Prepass(const Group& group, const Tiling& tiling, Expr tiles, expr::ExprPool& pool, Names& names)
      : group_(group), tiling_(tiling), tiles_(tiles), pool_(pool), names_(names) {}

  LiveSteps run(const std::vector<Expr>& conditions, const ir::Program& program) {
    LiveSteps found = find(conditions, program);
    if (!found.first) return {};
    found.statements.insert(found.statements.begin(), of_stream_.begin(), of_stream_.end());
    return found;
  }

 private:
  LiveSteps find(const std::vector<Expr>& conditions, const ir::Program& program) {
    const TileAxis& stream = tiling_.at(group_.stream);
    if (!stream.tile) return {};
    MaskIntervals intervals(
        group_, tiling_, program, pool_,
        [&](Expr value, Expr axis, bool is_greatest) { return extreme(value, axis, is_greatest); });
    Expr may;
    Expr must;
    for (Expr c : conditions) {
      const TileTruth t = intervals.truth(c);
      if (t.may) out_.conditions.push_back(c);
      if (t.must) out_.settled.push_back(c);
      if (t.may) may = may ? pool_.binary(Op::And, may, t.may) : t.may;
      if (t.must) must = must ? pool_.binary(Op::And, must, t.must) : t.must;
    }
    if (!may) return {};
    const Expr steps = tile_count(group_, stream, pool_);
    const Expr one = pool_.integer(1);
    const Expr last = pool_.binary(Op::Sub, steps, one);
    const Expr after = pool_.binary(Op::Add, stream.tile, one);
    const Expr none = pool_.integer(0);
    axes_ = axes_of(must ? pool_.binary(Op::And, may, must) : may, group_.row);
    const std::string stem(group_.stream.name().str());
    const Expr zero = pool_.integer(0);
    out_.first =
        pool_.binary(Op::Max, zero, bound(stem + ".first", Reducer::Min, may, stream.tile, last));
    out_.end = bound(stem + ".end", Reducer::Max, may, after, none);
    if (!must) return std::move(out_);
    const Expr first = bound(stem + ".full", Reducer::Min, must, stream.tile, steps);
    const Expr end = bound(stem + ".full_last", Reducer::Max, must, after, none);
    const Expr count = bound(stem + ".full_count", Reducer::Sum, must, one, none);
    // Steps that are no range count as none.
    const Expr is_range = pool_.binary(Op::Eq, pool_.binary(Op::Sub, end, first), count);
    const Expr full_end =
        stored(stem + ".full_end", DType::I32, {}, {},
               pool_.cast(DType::I32, pool_.select(is_range, end, first)), Reducer::Sum, {});
    out_.full = pool_.binary(Op::And, pool_.binary(Op::Ge, stream.tile, first),
                             pool_.binary(Op::Lt, stream.tile, pool_.cast(DType::I64, full_end)));
    return std::move(out_);
  }

  // Axes of a statement's result: those outside of the tile that the value uses, and the tile's
  // number.
  ir::Axes axes_of(Expr value, Expr tiled) const {
    ir::Axes axes;
    for (Expr a : tiling_.order()) {
      const TileAxis& t = tiling_.at(a);
      if (t.kind == AxisKind::Batch && expr::depends_on(value, a))
        axes.push_back({a.name(), t.extent});
    }
    const TileAxis& t = tiling_.at(tiled);
    if (expr::depends_on(value, t.tile))
      axes.push_back({t.tile.name(), tiled == group_.row ? tiles_ : tile_count(group_, t, pool_)});
    return axes;
  }

  ir::Name fresh(const std::string& stem) {
    std::string name = stem;
    for (int n = 2; names_.variables.contains(name) || !names_.buffers.insert(name).second; ++n)
      name = fmt::format("{}_{}", stem, n);
    return pool_.name(name);
  }

  Expr identity(Reducer reducer, DType dtype) {
    const expr::Value v = expr::identity(reducer, dtype);
    return is_float(dtype) ? pool_.floating(v.f, dtype) : pool_.integer(v.i, dtype);
  }

  // A statement over axes_: a reduction along `axis`, or a plain value if there is none. The result
  // is the element that belongs to the tile.
  Expr stored(const std::string& stem, DType dtype, ir::Name axis, Expr extent, Expr value,
              Reducer reducer, Expr init) {
    const ir::Name name = fresh(stem);
    scalar::Buffer buffer{name, {dtype, {}}, scalar::Role::Temp};
    ir::Exprs indices;
    for (const ir::Axis& a : axes_) {
      buffer.type.dims.push_back(a.extent);
      indices.push_back(pool_.index(a.name));
    }
    out_.buffers.push_back(std::move(buffer));
    ir::Block body;
    if (!axis) {
      body.push_back(ir::make(scalar::Store{name, indices, value}));
    } else {
      body.push_back(ir::make(scalar::Init{name, indices, init}));
      scalar::For loop{{{axis, extent}}, scalar::LoopKind::Reduce, {}};
      loop.body.push_back(ir::make(scalar::Update{name, indices, reducer, value}));
      body.push_back(ir::make(std::move(loop)));
    }
    ir::Block& out = is_of_stream_ ? of_stream_ : out_.statements;
    if (axes_.empty()) {
      for (ir::Op& op : body) out.push_back(std::move(op));
    } else {
      out.push_back(ir::make(scalar::For{axes_, scalar::LoopKind::Map, std::move(body)}));
    }
    return pool_.read(name, dtype, indices);
  }

  // The extreme of `value` over the tile of an axis.
  Expr extreme(Expr value, Expr axis, bool is_greatest) {
    for (const auto& [known, read] : extremes_[is_greatest ? 1 : 0]) {
      if (known == value) return read;
    }
    const TileAxis& t = tiling_.at(axis);
    const Expr position =
        pool_.binary(Op::Add, pool_.binary(Op::Mul, t.tile, pool_.integer(t.size)), axis);
    const Reducer reducer = is_greatest ? Reducer::Max : Reducer::Min;
    const Expr none = identity(reducer, value.dtype());
    const Expr inside = expr::substitute(pool_, value, {{axis, position}});
    const Expr term = pool_.select(pool_.binary(Op::Lt, position, t.extent), inside, none);
    axes_ = axes_of(term, axis);
    std::string stem = "mask";
    for (ir::Name n : expr::tensors_read(value)) stem = std::string(n.str());
    stem += fmt::format(".{}.{}", axis.name().str(), is_greatest ? "most" : "least");
    is_of_stream_ = axis == group_.stream;
    const Expr read =
        stored(stem, value.dtype(), axis.name(), pool_.integer(t.size), term, reducer, none);
    is_of_stream_ = false;
    extremes_[is_greatest ? 1 : 0].emplace_back(value, read);
    return read;
  }

  // One number per tile of rows, from the steps in which a condition holds.
  Expr bound(const std::string& stem, Reducer reducer, Expr condition, Expr value, Expr other) {
    const TileAxis& stream = tiling_.at(group_.stream);
    const Expr init = pool_.cast(DType::I32, other);
    const Expr term = pool_.select(condition, pool_.cast(DType::I32, value), init);
    return pool_.cast(DType::I64, stored(stem, DType::I32, stream.tile.name(),
                                         tile_count(group_, stream, pool_), term, reducer, init));
  }

  const Group& group_;
  const Tiling& tiling_;
  Expr tiles_;
  expr::ExprPool& pool_;
  Names& names_;
  LiveSteps out_;
  ir::Axes axes_;
  std::vector<std::pair<Expr, Expr>> extremes_[2];
  bool is_of_stream_ = false;
  // Summaries of steps come first: those of rows then stand beside the bounds, which have the same
  // axes and share a kernel with them.
  ir::Block of_stream_;
};

}  // namespace

LiveSteps live_steps(const Group& group, const Tiling& tiling, const std::vector<Expr>& conditions,
                     const ir::Program& program, expr::ExprPool& pool, Names& names) {
  const TileAxis& rows = tiling.at(group.row);
  const Expr tiles = tile_count(group, rows, pool);
  if (!tiling.group_var())
    return Prepass(group, tiling, tiles, pool, names).run(conditions, program);
  // Every warp group has steps of its own: few rows meet fewer of them.
  const int64_t groups = rows.size / tiling.group_rows();
  const auto is_taken = [&](const std::string& name) {
    return names.variables.contains(name) || names.buffers.contains(name) ||
           std::any_of(group.extents.begin(), group.extents.end(),
                       [&](const auto& e) { return e.first.name().str() == name; });
  };
  std::string name = fmt::format("{}_group", rows.tile.name().str());
  while (is_taken(name)) name += "_2";
  const Expr tile = pool.index(pool.name(name));
  const Tiling fine = tiling.of_groups(group.row, tile);
  const Expr n = pool.integer(groups);
  LiveSteps out =
      Prepass(group, fine, pool.binary(Op::Mul, tiles, n), pool, names).run(conditions, program);
  const expr::Substitution own = {
      {tile, pool.binary(Op::Add, pool.binary(Op::Mul, rows.tile, n), tiling.group_var())}};
  for (Expr* e : {&out.first, &out.end, &out.full}) {
    if (*e) *e = expr::substitute(pool, *e, own);
  }
  return out;
}

}  // namespace nautilus::schedule

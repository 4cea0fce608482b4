// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/live_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "expr/bounds/affine.h"
#include "expr/bounds/quotient.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "schedule/nest/mask_intervals.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;
using expr::Reducer;

Expr tile_count(const Fusion& fusion, const TileAxis& t, expr::ExprPool& pool) {
  if (t.kind == AxisKind::Row && fusion.row_block > 0) {
    return expr::exact_quotient(pool, t.extent, fusion.block_rows);
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
  Prepass(const Fusion& fusion, const Tiling& tiling, Expr tiles, expr::ExprPool& pool,
          Names& names)
      : fusion_(fusion), tiling_(tiling), tiles_(tiles), pool_(pool), names_(names) {}

  LiveSteps run(const std::vector<Expr>& conditions, const ir::Program& program) {
    LiveSteps found = find(conditions, program);
    if (!found.first) return {};
    found.statements.insert(found.statements.begin(), of_stream_.begin(), of_stream_.end());
    return found;
  }

  // The same as a list. Nothing if no condition can tell steps apart, or if none needs a list and
  // it was not asked for.
  LiveSteps list(const std::vector<Expr>& conditions, const std::vector<Expr>& bounds,
                 bool is_asked, const ir::Program& program) {
    const TileAxis& stream = tiling_.at(fusion_.stream);
    if (!stream.tile) return {};
    MaskIntervals intervals(
        fusion_, tiling_, program, pool_, [&](Expr value, Expr axis, bool is_greatest) {
          return axis ? extreme(value, axis, is_greatest) : extreme_of_both(value, is_greatest);
        });
    Expr may;
    Expr must;
    bool is_all = true;
    for (const auto* some : {&conditions, &bounds}) {
      for (Expr c : *some) {
        const TileTruth t = intervals.truth(c);
        if (t.may) may = both(may, t.may);
        if (t.may) out_.conditions.push_back(c);
        if (t.must) must = both(must, t.must);
        if (t.must) out_.settled.push_back(c);
        is_all &= static_cast<bool>(t.must);
      }
    }
    if ((!has_both_ && !is_asked) || !may) return {};
    if (!is_all) out_.settled.clear();
    const Expr end = pool_.binary(Op::Mul, pool_.binary(Op::Add, stream.tile, pool_.integer(1)),
                                  pool_.integer(stream.size));
    must = both(is_all ? must : pool_.boolean(false), pool_.binary(Op::Le, end, stream.extent));
    write_list(may, must);
    out_.statements.insert(out_.statements.begin(), of_stream_.begin(), of_stream_.end());
    return std::move(out_);
  }

 private:
  Expr both(Expr a, Expr b) { return !a ? b : pool_.binary(Op::And, a, b); }

  void write_list(Expr may, Expr must) {
    const TileAxis& stream = tiling_.at(fusion_.stream);
    const Expr steps = tile_count(fusion_, stream, pool_);
    const Expr one = pool_.integer(1);
    const Expr none = pool_.integer(0);
    const auto i32 = [&](Expr e) { return pool_.cast(DType::I32, e); };
    const auto i64 = [&](Expr e) { return pool_.cast(DType::I64, e); };
    const auto is = [&](Op op, Expr a, Expr b) { return pool_.binary(op, a, b); };
    const std::string stem(fusion_.stream.name().str());
    const ir::Axes rows = axes_of(pool_.binary(Op::And, may, must), fusion_.row);
    const ir::Axis step{stream.tile.name(), steps};
    axes_ = rows;
    axes_.push_back(step);
    const Expr state = i64(stored(
        stem + ".state", DType::I32, {},
        i32(pool_.select(may, pool_.select(must, pool_.integer(2), one), none)), Reducer::Sum, {}));
    const auto counted = [&](const char* name, Expr condition, Reducer reducer) {
      return i64(stored(stem + name, DType::I32, {step}, i32(pool_.select(condition, one, none)),
                        reducer, i32(none)));
    };
    axes_ = rows;
    const Expr count = counted(".count", is(Op::Ne, state, none), Reducer::Sum);
    const Expr parts = counted(".parts_live", is(Op::Eq, state, one), Reducer::Sum);
    // Places: steps that are live in part first, each kind in its order.
    axes_ = rows;
    axes_.push_back(step);
    const Expr earlier = pool_.index(fresh(stem + "0_earlier"));
    const Expr state_of_earlier = expr::substitute(pool_, state, {{stream.tile, earlier}});
    const Expr is_before =
        is(Op::And, is(Op::Lt, earlier, stream.tile), is(Op::Eq, state_of_earlier, state));
    const Expr place =
        i64(stored(stem + ".place", DType::I32, {{earlier.name(), steps}},
                   i32(pool_.select(is_before, one, none)), Reducer::Sum,
                   i32(pool_.select(is(Op::Eq, state, pool_.integer(2)), parts, none))));
    // One more place, so that there is always one.
    const Expr number = pool_.index(fresh(stem + "0_place"));
    axes_ = rows;
    axes_.push_back({number.name(), pool_.binary(Op::Add, steps, one)});
    // Places without a step are beyond the axis.
    const Expr beyond = i32(steps);
    const Expr is_here = is(Op::And, is(Op::Ne, state, none), is(Op::Eq, place, number));
    const Expr listed =
        stored(stem + ".list", DType::I32, {step}, pool_.select(is_here, i32(stream.tile), beyond),
               Reducer::Min, beyond);
    const Expr inside = pool_.binary(Op::Min, pool_.binary(Op::Max, stream.tile, none), steps);
    out_.listed =
        pool_.binary(Op::Max, none, i64(expr::substitute(pool_, listed, {{number, inside}})));
    out_.first = none;
    out_.end = pool_.binary(Op::Min, steps, count);
    // A list of nothing has one step, which is masked.
    out_.full = is(Op::Ge, stream.tile,
                   pool_.binary(Op::Max, parts, pool_.select(is(Op::Eq, count, none), one, none)));
  }

  LiveSteps find(const std::vector<Expr>& conditions, const ir::Program& program) {
    const TileAxis& stream = tiling_.at(fusion_.stream);
    if (!stream.tile) return {};
    MaskIntervals intervals(fusion_, tiling_, program, pool_,
                            [&](Expr value, Expr axis, bool is_greatest) {
                              return axis ? extreme(value, axis, is_greatest) : Expr();
                            });
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
    const Expr steps = tile_count(fusion_, stream, pool_);
    const Expr one = pool_.integer(1);
    const Expr last = pool_.binary(Op::Sub, steps, one);
    const Expr after = pool_.binary(Op::Add, stream.tile, one);
    const Expr none = pool_.integer(0);
    axes_ = axes_of(must ? pool_.binary(Op::And, may, must) : may, fusion_.row);
    const std::string stem(fusion_.stream.name().str());
    const Expr zero = pool_.integer(0);
    out_.first =
        pool_.binary(Op::Max, zero, bound(stem + ".first", Reducer::Min, may, stream.tile, last));
    out_.end = bound(stem + ".end", Reducer::Max, may, after, none);
    if (!must) return std::move(out_);
    const Expr first = bound(stem + ".full", Reducer::Min, must, stream.tile, steps);
    const Expr end = bound(stem + ".full_last", Reducer::Max, must, after, none);
    const Expr count = bound(stem + ".full_count", Reducer::Sum, must, one, none);
    // Steps that are not a range count as none.
    const Expr is_range = pool_.binary(Op::Eq, pool_.binary(Op::Sub, end, first), count);
    const Expr full_end =
        stored(stem + ".full_end", DType::I32, {},
               pool_.cast(DType::I32, pool_.select(is_range, end, first)), Reducer::Sum, {});
    out_.full = pool_.binary(Op::And, pool_.binary(Op::Ge, stream.tile, first),
                             pool_.binary(Op::Lt, stream.tile, pool_.cast(DType::I64, full_end)));
    return std::move(out_);
  }

  // Axes of a statement's result: those outside the tile that the value uses, and the tile's
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
      axes.push_back(
          {t.tile.name(), tiled == fusion_.row ? tiles_ : tile_count(fusion_, t, pool_)});
    return axes;
  }

  ir::Name fresh(std::string_view wish) { return pool_.name(names_.fresh(wish)); }

  Expr identity(Reducer reducer, DType dtype) {
    const expr::Value v = expr::identity(reducer, dtype);
    return is_float(dtype) ? pool_.floating(v.f, dtype) : pool_.integer(v.i, dtype);
  }

  // A statement over axes_: a reduction along `reduced`, or a plain value if there is none. The
  // result is the element that belongs to the tile.
  Expr stored(const std::string& stem, DType dtype, const ir::Axes& reduced, Expr value,
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
    if (reduced.empty()) {
      body.push_back(ir::make(scalar::Store{name, indices, value}));
    } else {
      body.push_back(ir::make(scalar::Init{name, indices, init}));
      scalar::For loop{reduced, scalar::LoopKind::Reduce, {}};
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
    is_of_stream_ = axis == fusion_.stream;
    const Expr read =
        stored(stem, value.dtype(), {{axis.name(), pool_.integer(t.size)}}, term, reducer, none);
    is_of_stream_ = false;
    extremes_[is_greatest ? 1 : 0].emplace_back(value, read);
    return read;
  }

  // Neighbours of a tile at which the value is the same, as many as divide its size: for a table of
  // blocks, `block[i / 128, j / 128]`, one element is enough.
  static int64_t alike_places(Expr value, Expr axis, int64_t size) {
    int64_t alike = size;
    auto go = [&](auto& self, Expr e) -> void {
      const bool is_block =
          e.op() == Op::FloorDiv && e[0] == axis && e[1].op() == Op::IntConst && e[1].integer() > 0;
      if (is_block) {
        alike = std::gcd(alike, e[1].integer());
      } else if (e == axis) {
        alike = 1;
      } else {
        for (Expr a : e.args()) self(self, a);
      }
    };
    go(go, value);
    return alike;
  }

  // The same over the rows of a tile and the positions of a step.
  Expr extreme_of_both(Expr value, bool is_greatest) {
    has_both_ = true;
    for (const auto& [known, read] : extremes_[is_greatest ? 1 : 0]) {
      if (known == value) return read;
    }
    const Reducer reducer = is_greatest ? Reducer::Max : Reducer::Min;
    const Expr none = identity(reducer, DType::I32);
    expr::Substitution positions;
    Expr is_inside;
    ir::Axes reduced;
    for (Expr axis : {fusion_.row, fusion_.stream}) {
      const TileAxis& t = tiling_.at(axis);
      const int64_t alike = alike_places(value, axis, t.size);
      const Expr place = alike == 1 ? axis : pool_.binary(Op::Mul, axis, pool_.integer(alike));
      const Expr position =
          pool_.binary(Op::Add, pool_.binary(Op::Mul, t.tile, pool_.integer(t.size)), place);
      positions.emplace(axis, position);
      is_inside = both(is_inside, pool_.binary(Op::Lt, position, t.extent));
      reduced.push_back({axis.name(), pool_.integer(t.size / alike)});
    }
    const Expr term = pool_.select(
        is_inside, pool_.cast(DType::I32, expr::substitute(pool_, value, positions)), none);
    axes_ = axes_of(term, fusion_.row);
    const TileAxis& stream = tiling_.at(fusion_.stream);
    axes_.push_back({stream.tile.name(), tile_count(fusion_, stream, pool_)});
    std::string stem = "mask";
    for (ir::Name n : expr::tensors_read(value)) stem = std::string(n.str());
    stem += is_greatest ? ".most" : ".least";
    const Expr read =
        pool_.cast(DType::I64, stored(stem, DType::I32, reduced, term, reducer, none));
    extremes_[is_greatest ? 1 : 0].emplace_back(value, read);
    return read;
  }

  // One number per tile of rows, from the steps in which a condition holds.
  Expr bound(const std::string& stem, Reducer reducer, Expr condition, Expr value, Expr other) {
    const TileAxis& stream = tiling_.at(fusion_.stream);
    const Expr init = pool_.cast(DType::I32, other);
    const Expr term = pool_.select(condition, pool_.cast(DType::I32, value), init);
    return pool_.cast(DType::I64, stored(stem, DType::I32,
                                         {{stream.tile.name(), tile_count(fusion_, stream, pool_)}},
                                         term, reducer, init));
  }

  const Fusion& fusion_;
  const Tiling& tiling_;
  Expr tiles_;
  expr::ExprPool& pool_;
  Names& names_;
  LiveSteps out_;
  ir::Axes axes_;
  std::vector<std::pair<Expr, Expr>> extremes_[2];
  bool is_of_stream_ = false;
  bool has_both_ = false;  // a condition was evaluated point by point
  // Summaries of steps come first: those of rows are then next to the bounds, which have the same
  // axes and share a kernel with them.
  ir::Block of_stream_;
};

}  // namespace

LiveSteps live_steps(const FusionScope& scope, const Tiling& tiling,
                     const std::vector<Expr>& conditions, const std::vector<Expr>& bounds,
                     std::optional<StepsForm> form, Names& names) {
  const Fusion& fusion = scope.fusion;
  const ir::Program& program = scope.program;
  expr::ExprPool& pool = scope.pool;
  const TileAxis& rows = tiling.at(fusion.row);
  const Expr tiles = tile_count(fusion, rows, pool);
  if (form != StepsForm::Range) {
    const Names before = names;
    LiveSteps listed = Prepass(fusion, tiling, tiles, pool, names)
                           .list(conditions, bounds, form == StepsForm::List, program);
    if (listed.listed || form) return listed;
    names = before;
  }
  if (!tiling.group_var())
    return Prepass(fusion, tiling, tiles, pool, names).run(conditions, program);
  // Every warp group has steps of its own: few rows meet fewer of them.
  const int64_t groups = rows.size / tiling.group_rows();
  const auto is_taken = [&](const std::string& name) {
    return names.variables.contains(name) || names.buffers.contains(name) ||
           std::any_of(fusion.extents.begin(), fusion.extents.end(),
                       [&](const auto& e) { return e.first.name().str() == name; });
  };
  std::string name = fmt::format("{}_group", rows.tile.name().str());
  while (is_taken(name)) name += "_2";
  const Expr tile = pool.index(pool.name(name));
  const Tiling fine = tiling.of_groups(fusion.row, tile);
  const Expr n = pool.integer(groups);
  LiveSteps out =
      Prepass(fusion, fine, pool.binary(Op::Mul, tiles, n), pool, names).run(conditions, program);
  const expr::Substitution own = {
      {tile, pool.binary(Op::Add, pool.binary(Op::Mul, rows.tile, n), tiling.group_var())}};
  for (Expr* e : {&out.first, &out.end, &out.full}) {
    if (*e) *e = expr::substitute(pool, *e, own);
  }
  return out;
}

}  // namespace nautilus::schedule

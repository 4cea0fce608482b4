// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/split.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/bounds/quotient.h"
#include "expr/print.h"
#include "expr/rules/simplify.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "ir/environment.h"
#include "ir/machine.h"
#include "schedule/fusion/recurrence.h"
#include "target/target.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;

namespace {

class SizeMaker {
 public:
  explicit SizeMaker(expr::ExprPool& pool) : pool_(pool) {}

  Expr number(int64_t n) { return pool_.integer(n); }
  Expr mul(Expr a, Expr b) { return pool_.binary(Op::Mul, a, b); }
  Expr div(Expr a, Expr b) { return pool_.binary(Op::FloorDiv, a, b); }
  Expr most(Expr a, Expr b) { return pool_.binary(Op::Max, a, b); }
  Expr least(Expr a, Expr b) { return pool_.binary(Op::Min, a, b); }
  // a / b rounded up.
  Expr ceil(Expr a, Expr b) {
    const Expr rest =
        b.op() == Op::IntConst ? number(b.integer() - 1) : pool_.binary(Op::Sub, b, number(1));
    return div(pool_.binary(Op::Add, a, rest), b);
  }

 private:
  expr::ExprPool& pool_;
};

// Rows of a tile that can be there.
int64_t rows_of(const Fusion& fusion, const TileConfig& sizes) {
  const int64_t tile = fusion.target->matrix.rows * sizes.warp_groups;
  if (fusion.row_block > 0) return std::min(fusion.row_block, tile);
  const Expr rows = fusion.extents.at(fusion.row);
  return rows.op() == Op::IntConst ? std::min(rows.integer(), tile) : tile;
}

int64_t width_of(const Fusion& fusion, const TileConfig& sizes, Expr axis) {
  if (axis == fusion.stream) return sizes.step;
  if (axis == fusion.row) return rows_of(fusion, sizes);
  return fusion.is_whole(axis) ? fusion.extents.at(axis).integer()
                               : std::max<int64_t>(sizes.column, 1);
}

// Members other than rolled ones that an expression of the fusion reads.
bool reads_other_members(const Fusion& fusion, Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) {
    const Member* m = x.op() == Op::Read ? fusion.find(x) : nullptr;
    found |= m && !m->is_rolled;
  });
  return found;
}

// Of the largest state of a tile, those that exist.
int64_t state_elements(const Fusion& fusion, const TileConfig& sizes) {
  int64_t most = 0;
  for (const Member& m : fusion.members) {
    if (!m.is_rolled) continue;
    int64_t elements = 1;
    for (Expr a : fusion.tile_axes(m)) elements *= width_of(fusion, sizes, a);
    most = std::max(most, elements);
  }
  return most;
}

Recurrence known_recurrence(const FusionScope& scope, const Member& m) {
  const auto r = recurrence_of(scope.fusion, m, scope.signs, scope.pool);
  NAUT_CHECK(r, "`{}` was accepted and cannot be rolled: {}", m.target.str(),
             r.rejection().message);
  return *r;
}

Expr factor_of(const FusionScope& scope, const Member& m,
               const std::vector<algebra::Moved>& moved) {
  return algebra::repair_factor(scope.pool, known_recurrence(scope, m).part, moved, scope.signs);
}

Expr identity_of(const Member& m, expr::ExprPool& pool) {
  return pool.constant(expr::identity(m.reducer, m.dtype).f, m.dtype);
}

algebra::Moved moved_to(const Member& m, Expr after) {
  const bool is_extreme =
      is_float(m.dtype) && (m.reducer == expr::Reducer::Max || m.reducer == expr::Reducer::Min);
  return {m.read, after, is_extreme ? expr::identity(m.reducer, m.dtype).f : 0.0};
}

// Stands for the value that a part's is repaired to.
Expr after_of(const Member& m, expr::ExprPool& pool) {
  return pool.read(pool.name(fmt::format("{}.new", m.target.str())), m.dtype, m.axes);
}

}  // namespace

Expr count_tiles(const Fusion& fusion, const Tiling& tiling, expr::ExprPool& pool) {
  SizeMaker make(pool);
  Expr count;
  for (Expr a : tiling.order()) {
    const TileAxis& t = tiling.at(a);
    if (t.kind == AxisKind::Stream || t.kind == AxisKind::Outer || t.kind == AxisKind::Whole)
      continue;
    const bool is_block = t.kind == AxisKind::Row && fusion.row_block > 0;
    const Expr tiles = t.kind == AxisKind::Batch ? t.extent
                       : is_block ? expr::exact_quotient(pool, t.extent, fusion.block_rows)
                                  : make.ceil(t.extent, make.number(t.size));
    count = count ? make.mul(count, tiles) : tiles;
  }
  return expr::Simplifier(pool).simplify(count ? count : make.number(1));
}

SplitSizes name_split_sizes(const Fusion& fusion, const Split& split, expr::ExprPool& pool,
                            Names& names) {
  const std::string stem(fusion.stream.name().str());
  auto fresh = [&](std::string_view suffix) {
    return pool.index(names.fresh(fmt::format("{}_{}", stem, suffix)));
  };
  SplitSizes s;
  s.combines_last = split.combines_last;
  s.part = fresh("part");
  s.steps = fresh("steps");
  if (split.parts == Split::kFill) {
    s.tiles = fresh("tiles");
    s.target_parts = fresh("wanted");
  }
  s.steps_per_part = fresh("each");
  s.parts = fresh("parts");
  s.split = s.parts;
  if (split.or_whole) {
    s.split = fresh("split");
    s.is_whole = fresh("whole");
    s.is_split = fresh("again");
    s.run_axis = fresh("once");
  }
  return s;
}

ir::Block declare_split_sizes(const FusionScope& scope, const SplitSizes& s,
                              const TileConfig& sizes, const Split& split, Expr tiles) {
  const Fusion& fusion = scope.fusion;
  expr::ExprPool& pool = scope.pool;
  SizeMaker make(pool);
  ir::Block out;
  auto declare = [&](Expr name, Expr value) {
    out.push_back(ir::make(ir::Size{name.name(), value}));
  };
  const Expr one = make.number(1);
  Expr steps = make.ceil(fusion.extents.at(fusion.stream), make.number(sizes.step));
  for (Expr a : fusion.outer) steps = make.mul(fusion.extents.at(a), steps);
  declare(s.steps, steps);
  Expr wanted;
  if (split.parts == Split::kFill) {
    // As few rounds of CTAs as there must be, if they fill most of the machine; else several
    // rounds of shorter ones, if those are long enough to be worth another round.
    const target::Parts& choice = fusion.target->parts;
    const Expr sms = pool.index(ir::machine_name(scope.program, pool));
    const Expr places = sizes.resident > 1 ? make.mul(make.number(sizes.resident), sms) : sms;
    declare(s.tiles, make.most(tiles, one));
    const Expr fit = make.most(make.div(places, s.tiles), one);
    const Expr run = make.mul(fit, s.tiles);
    const Expr is_full =
        pool.binary(Op::Ge, make.mul(make.number(choice.filled_of), run),
                    make.mul(make.mul(make.number(choice.filled), make.ceil(run, places)), places));
    const Expr more =
        make.most(make.div(make.mul(make.number(choice.rounds), places), s.tiles), one);
    const Expr is_short =
        pool.binary(Op::Lt, s.steps, make.mul(make.number(choice.worth_a_round), more));
    declare(s.target_parts, pool.select(pool.binary(Op::Or, is_full, is_short), fit, more));
    const int64_t least = least_steps(fusion, sizes);
    wanted =
        make.least(s.target_parts, least > 1 ? make.div(s.steps, make.number(least)) : s.steps);
  } else {
    wanted = make.least(make.number(split.parts), s.steps);
  }
  declare(s.steps_per_part, make.most(make.ceil(s.steps, make.most(wanted, one)), one));
  declare(s.parts, make.most(make.ceil(s.steps, s.steps_per_part), one));
  if (!s.is_whole) return out;
  const Expr is_split = pool.binary(Op::Gt, s.parts, one);
  declare(s.split, pool.select(is_split, s.parts, make.number(0)));
  declare(s.is_split, pool.select(is_split, one, make.number(0)));
  declare(s.is_whole, pool.binary(Op::Sub, one, s.is_split));
  return out;
}

int64_t least_steps(const Fusion& fusion, const TileConfig& sizes) {
  constexpr int64_t kF32Bytes = 4;  // of an element of a state
  int64_t state = 0;
  int64_t step = 0;
  for (size_t k = 0; k < fusion.members.size(); ++k) {
    const Member& m = fusion.members[k];
    if (m.is_rolled) {
      int64_t bytes = kF32Bytes;
      for (Expr a : fusion.tile_axes(m)) bytes *= width_of(fusion, sizes, a);
      state += bytes;
    }
    for (const Dot& d : fusion.dots_of(k)) {
      for (const Expr a : {d.column, fusion.row}) {
        const bool is_streamed = a == fusion.stream || d.depth == fusion.stream;
        if (is_streamed)
          step += d.operand_bytes() * width_of(fusion, sizes, a) * width_of(fusion, sizes, d.depth);
      }
    }
  }
  return std::clamp<int64_t>((2 * state + step - 1) / std::max<int64_t>(step, 1), 1,
                             fusion.target->parts.least_steps);
}

std::optional<Rejection> refuse_split(const FusionScope& scope, const Tiling& tiling) {
  const Fusion& fusion = scope.fusion;
  expr::ExprPool& pool = scope.pool;
  const std::string axis(fusion.stream.name().str());
  if (!tiling.has_loop())
    return Rejection{"split", fmt::format("`{}` is one step, there is nothing to split", axis)};
  std::vector<algebra::Moved> moved;
  for (const Member& m : fusion.members) {
    if (m.is_closing)
      return Rejection{"split", fmt::format("`{}` needs more than the parts hold", m.target.str())};
    if (!m.place.empty())
      return Rejection{"split",
                       fmt::format("`{}` is put into place by the kernel", m.target.str())};
    if (!m.is_rolled) {
      const bool is_late = !m.is_reduction() && !m.has(fusion.stream);
      if (is_late && reads_other_members(fusion, fusion.inlined(pool, m.value)))
        return Rejection{"split",
                         fmt::format("`{}` needs more than the parts hold", m.target.str())};
      continue;
    }
    if (!m.has(fusion.row))
      return Rejection{"split", fmt::format("`{}` has no row", m.target.str())};
    if (expr::compute_dtype(m.dtype) != m.dtype)
      return Rejection{"split", fmt::format("parts of `{}` would be rounded to {}", m.target.str(),
                                            expr::name(m.dtype))};
    if (known_recurrence(scope, m).shift)
      return Rejection{"split",
                       fmt::format("`{}` is taken against a reference that moves", m.target.str())};
    const Expr factor = factor_of(scope, m, moved);
    if ((factor && reads_other_members(fusion, factor)) ||
        reads_other_members(fusion, fusion.inlined(pool, m.init)))
      return Rejection{"split", fmt::format("`{}` needs more than the parts hold", m.target.str())};
    moved.push_back(moved_to(m, after_of(m, pool)));
  }
  return std::nullopt;
}

std::optional<Rejection> refuse_last_tile(const Fusion& fusion, const Tiling& tiling,
                                          const TileConfig& sizes) {
  if (sizes.cluster > 1) return Rejection{"combine", "tiles of a cluster do not end one by one"};
  std::vector<Expr> longest;
  for (const Member& m : fusion.members) {
    if (m.is_rolled && m.axes.size() > longest.size()) longest = m.axes;
  }
  for (const Member& m : fusion.members) {
    if (!m.is_rolled) continue;
    // A value shared by tiles is written by one that may not have finished.
    for (Expr a : tiling.order()) {
      const AxisKind kind = tiling.at(a).kind;
      if ((kind == AxisKind::Batch || kind == AxisKind::Cut) && !m.has(a))
        return Rejection{"combine", fmt::format("tiles along `{}` share the parts of `{}`",
                                                a.name().str(), m.target.str())};
    }
    for (size_t k = 0; k < m.axes.size(); ++k) {
      if (m.axes[k] != longest[k])
        return Rejection{
            "combine", fmt::format("parts of `{}` have other axes than the rest", m.target.str())};
    }
  }
  return std::nullopt;
}

size_t place_of_part(const Fusion& fusion, const Member& m, const SplitSizes& s) {
  if (!s.combines_last) return 0;
  const auto row = std::find(m.axes.begin(), m.axes.end(), fusion.row);
  return row == m.axes.end() ? 0 : static_cast<size_t>(row - m.axes.begin()) + 1;
}

ir::Block combine_parts(const FusionScope& scope, const std::vector<PartValue>& values,
                        const std::vector<LateValue>& stored, const SplitSizes& s) {
  const Fusion& fusion = scope.fusion;
  expr::ExprPool& pool = scope.pool;
  ir::Block out;
  auto nest = [&](const Member& m, ir::Block body) {
    scalar::For loop{{}, scalar::LoopKind::Map, std::move(body)};
    if (s.is_split) loop.axes.push_back({s.run_axis.name(), s.is_split});
    for (Expr a : m.axes) loop.axes.push_back({a.name(), fusion.extents.at(a)});
    if (loop.axes.empty()) {
      for (ir::Op& op : loop.body) out.push_back(std::move(op));
    } else {
      out.push_back(ir::make(std::move(loop)));
    }
  };
  expr::Substitution to_whole;  // rolled reads, and what they become
  expr::Substitution to_part;
  expr::Substitution kept;  // what a part has of them, against the values of all
  std::vector<algebra::Moved> moved;
  for (const PartValue& v : values) {
    const Member& m = fusion.members[v.member];
    const Expr whole = pool.read(v.whole, m.dtype, m.axes);
    std::vector<Expr> at = m.axes;
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(place_of_part(fusion, m, s)), s.part);
    const Expr part = pool.read(v.parts, m.dtype, at);
    Expr term = part;
    if (const Expr factor = factor_of(scope, m, moved))
      term = pool.binary(Op::Mul, part, expr::substitute(pool, factor, to_part));
    // A term that attained the extreme of its own part counts if that is the extreme of all parts.
    for (Expr w : known_recurrence(scope, m).attained)
      term =
          pool.select(pool.binary(Op::Eq, kept.at(w), to_whole.at(w)), term, identity_of(m, pool));
    kept.emplace(m.read, term);
    const Expr init = expr::substitute(pool, fusion.inlined(pool, m.init), to_whole);
    scalar::For gather{{{s.part.name(), s.parts}}, scalar::LoopKind::Reduce, {}};
    gather.body.push_back(ir::make(scalar::Update{v.whole, m.axes, m.reducer, term}));
    nest(m, {ir::make(scalar::Init{v.whole, m.axes, init}), ir::make(std::move(gather))});
    to_whole.emplace(m.read, whole);
    // The factor leads from the part's value to the common one.
    const Expr after = after_of(m, pool);
    moved.push_back(moved_to(m, after));
    to_part.emplace(m.read, part);
    to_part.emplace(after, whole);
  }
  for (const LateValue& v : stored) {
    const Member& m = fusion.members[v.member];
    const Expr value = expr::substitute(pool, fusion.inlined(pool, v.value), to_whole);
    nest(m, {ir::make(scalar::Store{m.target, m.axes, value})});
  }
  return out;
}

Split choose_split(const FusionScope& scope, const TileConfig& sizes, std::string* why) {
  const Fusion& fusion = scope.fusion;
  ir::Environment hints;
  for (const ir::Op& op : scope.program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) hints.sizes.emplace(d->name.str(), *d->hint);
  }
  Names scratch;
  const Tiling tiling(fusion, sizes, scope.pool, scratch);
  const Expr count = count_tiles(fusion, tiling, scope.pool);
  const Expr length = fusion.extents.at(fusion.stream);
  const std::string axis(fusion.stream.name().str());
  const auto at_hints = [&](Expr e) -> std::optional<int64_t> {
    for (Expr v : expr::free_vars(e)) {
      if (!hints.sizes.contains(v.name().str())) return std::nullopt;
    }
    return ir::evaluate_size(e, hints);
  };
  // Without an axis of rows the tiles are few, and stay few when the problem grows.
  const bool is_blocked = fusion.row_block > 0 && tiling.has_loop();
  const auto tiles = at_hints(count);
  const auto extent = at_hints(length);
  int64_t steps = extent ? *extent / sizes.step : 0;
  for (Expr a : fusion.outer) steps *= at_hints(fusion.extents.at(a)).value_or(1);
  // For the choice between one kernel and two; the number of parts is the plan's.
  const int64_t sms = fusion.target->board.sms;
  const target::Parts& parts = fusion.target->parts;
  const bool is_idle = tiles && extent && 2 * *tiles <= sms && steps >= parts.long_axis &&
                       steps >= 2 * least_steps(fusion, sizes);
  if (!is_blocked && !is_idle) return {};
  if (const auto refused = refuse_split(scope, tiling)) {
    *why = fmt::format("{} stays whole: {}", axis, refused->message);
    return {};
  }
  *why = is_blocked ? fmt::format("split {}: no axis of rows has tiles, there are {} of them", axis,
                                  expr::to_string(count))
                    : fmt::format(
                          "split {}: {} tiles of {} steps at the hints leave most of {} "
                          "multiprocessors idle",
                          axis, *tiles, steps, sms);
  Split split{Split::kFill, true};
  // A few values for each thread: the last tile is done with them before another kernel begins.
  split.combines_last = is_blocked && state_elements(fusion, sizes) <= parts.few_states &&
                        !refuse_last_tile(fusion, tiling, sizes);
  return split;
}

}  // namespace nautilus::schedule

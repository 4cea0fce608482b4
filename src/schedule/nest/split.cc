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
int64_t rows_of(const Group& group, const Sizes& sizes) {
  const int64_t tile = group.target->matrix.rows * sizes.groups;
  if (group.row_block > 0) return std::min(group.row_block, tile);
  const Expr rows = group.extents.at(group.row);
  return rows.op() == Op::IntConst ? std::min(rows.integer(), tile) : tile;
}

int64_t width_of(const Group& group, const Sizes& sizes, Expr axis) {
  if (axis == group.stream) return sizes.step;
  if (axis == group.row) return rows_of(group, sizes);
  return group.is_whole(axis) ? group.extents.at(axis).integer()
                              : std::max<int64_t>(sizes.column, 1);
}

// Members other than rolled ones that an expression of the group reads.
bool reads_other_members(const Group& group, Expr e) {
  bool found = false;
  expr::for_each(e, [&](Expr x) {
    const Member* m = x.op() == Op::Read ? group.find(x) : nullptr;
    found |= m && !m->is_rolled;
  });
  return found;
}

// Of the largest state of a tile, those that exist.
int64_t state_elements(const Group& group, const Sizes& sizes) {
  int64_t most = 0;
  for (const Member& m : group.members) {
    if (!m.is_rolled) continue;
    int64_t elements = 1;
    for (Expr a : group.tile_axes(m)) elements *= width_of(group, sizes, a);
    most = std::max(most, elements);
  }
  return most;
}

Recurrence known_recurrence(const Group& group, const Member& m, const algebra::Signs& signs,
                            expr::ExprPool& pool) {
  const auto r = recurrence_of(group, m, signs, pool);
  NAUT_CHECK(r, "`{}` was accepted and cannot be rolled: {}", m.target.str(),
             r.rejection().message);
  return *r;
}

Expr factor_of(const Group& group, const Member& m, const std::vector<algebra::Moved>& moved,
               const algebra::Signs& signs, expr::ExprPool& pool) {
  return algebra::repair_factor(pool, known_recurrence(group, m, signs, pool).part, moved, signs);
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

Expr count_tiles(const Group& group, const Tiling& tiling, expr::ExprPool& pool) {
  SizeMaker make(pool);
  Expr count;
  for (Expr a : tiling.order()) {
    const TileAxis& t = tiling.at(a);
    if (t.kind == AxisKind::Stream || t.kind == AxisKind::Outer || t.kind == AxisKind::Whole)
      continue;
    const bool is_block = t.kind == AxisKind::Row && group.row_block > 0;
    const Expr tiles = t.kind == AxisKind::Batch ? t.extent
                       : is_block ? expr::exact_quotient(pool, t.extent, group.block_rows)
                                  : make.ceil(t.extent, make.number(t.size));
    count = count ? make.mul(count, tiles) : tiles;
  }
  return expr::Simplifier(pool).simplify(count ? count : make.number(1));
}

SplitSizes name_split_sizes(const Group& group, const Split& split, expr::ExprPool& pool,
                            Names& names) {
  const std::string stem(group.stream.name().str());
  auto fresh = [&](std::string_view suffix) {
    return pool.index(names.fresh(fmt::format("{}_{}", stem, suffix)));
  };
  SplitSizes s;
  s.combines_last = split.combines_last;
  s.part = fresh("part");
  s.steps = fresh("steps");
  if (split.parts == Split::kFill) {
    s.tiles = fresh("tiles");
    s.wanted = fresh("wanted");
  }
  s.each = fresh("each");
  s.parts = fresh("parts");
  s.split = s.parts;
  if (split.or_whole) {
    s.split = fresh("split");
    s.whole = fresh("whole");
    s.again = fresh("again");
    s.once = fresh("once");
  }
  return s;
}

ir::Block declare_split_sizes(const SplitSizes& s, const Group& group, const Sizes& sizes,
                              const Split& split, Expr tiles, const ir::Program& program,
                              expr::ExprPool& pool) {
  SizeMaker make(pool);
  ir::Block out;
  auto declare = [&](Expr name, Expr value) {
    out.push_back(ir::make(ir::Size{name.name(), value}));
  };
  const Expr one = make.number(1);
  Expr steps = make.ceil(group.extents.at(group.stream), make.number(sizes.step));
  for (Expr a : group.outer) steps = make.mul(group.extents.at(a), steps);
  declare(s.steps, steps);
  Expr wanted;
  if (split.parts == Split::kFill) {
    // As few rounds of CTAs as there must be, if they fill four fifths of the machine; else four
    // rounds of shorter ones, if those are long enough to be worth another round.
    const Expr sms = pool.index(ir::machine_name(program, pool));
    const Expr places = sizes.resident > 1 ? make.mul(make.number(sizes.resident), sms) : sms;
    declare(s.tiles, make.most(tiles, one));
    const Expr fit = make.most(make.div(places, s.tiles), one);
    const Expr run = make.mul(fit, s.tiles);
    const Expr is_full =
        pool.binary(Op::Ge, make.mul(make.number(5), run),
                    make.mul(make.mul(make.number(4), make.ceil(run, places)), places));
    const Expr more = make.most(make.div(make.mul(make.number(4), places), s.tiles), one);
    const Expr is_short = pool.binary(
        Op::Lt, s.steps, make.mul(make.number(group.target->parts.worth_a_round), more));
    declare(s.wanted, pool.select(pool.binary(Op::Or, is_full, is_short), fit, more));
    const int64_t least = least_steps(group, sizes);
    wanted = make.least(s.wanted, least > 1 ? make.div(s.steps, make.number(least)) : s.steps);
  } else {
    wanted = make.least(make.number(split.parts), s.steps);
  }
  declare(s.each, make.most(make.ceil(s.steps, make.most(wanted, one)), one));
  declare(s.parts, make.most(make.ceil(s.steps, s.each), one));
  if (!s.whole) return out;
  const Expr is_split = pool.binary(Op::Gt, s.parts, one);
  declare(s.split, pool.select(is_split, s.parts, make.number(0)));
  declare(s.again, pool.select(is_split, one, make.number(0)));
  declare(s.whole, pool.binary(Op::Sub, one, s.again));
  return out;
}

int64_t least_steps(const Group& group, const Sizes& sizes) {
  int64_t state = 0;
  int64_t step = 0;
  for (size_t k = 0; k < group.members.size(); ++k) {
    const Member& m = group.members[k];
    if (m.is_rolled) {
      int64_t elements = 4;
      for (Expr a : group.tile_axes(m)) elements *= width_of(group, sizes, a);
      state += elements;
    }
    const Dot* d = group.dot_of(k);
    if (!d) continue;
    for (const Expr a : {d->column, group.row}) {
      const bool is_streamed = a == group.stream || d->depth == group.stream;
      if (is_streamed) step += 2 * width_of(group, sizes, a) * width_of(group, sizes, d->depth);
    }
  }
  return std::clamp<int64_t>((2 * state + step - 1) / std::max<int64_t>(step, 1), 1,
                             group.target->parts.least_steps);
}

std::optional<Rejection> refuse_split(const Group& group, const Tiling& tiling,
                                      const algebra::Signs& signs, expr::ExprPool& pool) {
  const std::string axis(group.stream.name().str());
  if (!tiling.has_loop())
    return Rejection{"split", fmt::format("`{}` is one step, there is nothing to split", axis)};
  std::vector<algebra::Moved> moved;
  for (const Member& m : group.members) {
    if (m.is_closing)
      return Rejection{"split", fmt::format("`{}` needs more than the parts hold", m.target.str())};
    if (!m.is_rolled) {
      const bool is_late = !m.is_reduction() && !m.has(group.stream);
      if (is_late && reads_other_members(group, group.inlined(pool, m.value)))
        return Rejection{"split",
                         fmt::format("`{}` needs more than the parts hold", m.target.str())};
      continue;
    }
    if (!m.has(group.row))
      return Rejection{"split", fmt::format("`{}` has no row", m.target.str())};
    if (expr::compute_dtype(m.dtype) != m.dtype)
      return Rejection{"split", fmt::format("parts of `{}` would be rounded to {}", m.target.str(),
                                            expr::name(m.dtype))};
    if (known_recurrence(group, m, signs, pool).shift)
      return Rejection{"split",
                       fmt::format("`{}` is taken against a reference that moves", m.target.str())};
    const Expr factor = factor_of(group, m, moved, signs, pool);
    if ((factor && reads_other_members(group, factor)) ||
        reads_other_members(group, group.inlined(pool, m.init)))
      return Rejection{"split", fmt::format("`{}` needs more than the parts hold", m.target.str())};
    moved.push_back(moved_to(m, after_of(m, pool)));
  }
  return std::nullopt;
}

std::optional<Rejection> refuse_last_tile(const Group& group, const Tiling& tiling,
                                          const Sizes& sizes) {
  if (sizes.cluster > 1) return Rejection{"combine", "tiles of a cluster do not end one by one"};
  std::vector<Expr> longest;
  for (const Member& m : group.members) {
    if (m.is_rolled && m.axes.size() > longest.size()) longest = m.axes;
  }
  for (const Member& m : group.members) {
    if (!m.is_rolled) continue;
    // What several tiles have alike is written by one of them, which may still be at work.
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

size_t place_of_part(const Group& group, const Member& m, const SplitSizes& s) {
  if (!s.combines_last) return 0;
  const auto row = std::find(m.axes.begin(), m.axes.end(), group.row);
  return row == m.axes.end() ? 0 : static_cast<size_t>(row - m.axes.begin()) + 1;
}

ir::Block combine_parts(const Group& group, const std::vector<PartValue>& values,
                        const std::vector<LateValue>& stored, const SplitSizes& s,
                        const algebra::Signs& signs, expr::ExprPool& pool) {
  ir::Block out;
  auto nest = [&](const Member& m, ir::Block body) {
    scalar::For loop{{}, scalar::LoopKind::Map, std::move(body)};
    if (s.again) loop.axes.push_back({s.once.name(), s.again});
    for (Expr a : m.axes) loop.axes.push_back({a.name(), group.extents.at(a)});
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
    const Member& m = group.members[v.member];
    const Expr whole = pool.read(v.whole, m.dtype, m.axes);
    std::vector<Expr> at = m.axes;
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(place_of_part(group, m, s)), s.part);
    const Expr part = pool.read(v.parts, m.dtype, at);
    Expr term = part;
    if (const Expr factor = factor_of(group, m, moved, signs, pool))
      term = pool.binary(Op::Mul, part, expr::substitute(pool, factor, to_part));
    // What attained the extreme of its own part counts if that is the extreme of all.
    for (Expr w : known_recurrence(group, m, signs, pool).attained)
      term =
          pool.select(pool.binary(Op::Eq, kept.at(w), to_whole.at(w)), term, identity_of(m, pool));
    kept.emplace(m.read, term);
    const Expr init = expr::substitute(pool, group.inlined(pool, m.init), to_whole);
    scalar::For gather{{{s.part.name(), s.parts}}, scalar::LoopKind::Reduce, {}};
    gather.body.push_back(ir::make(scalar::Update{v.whole, m.axes, m.reducer, term}));
    nest(m, {ir::make(scalar::Init{v.whole, m.axes, init}), ir::make(std::move(gather))});
    to_whole.emplace(m.read, whole);
    // The factor goes from the part's value to the common one.
    const Expr after = after_of(m, pool);
    moved.push_back(moved_to(m, after));
    to_part.emplace(m.read, part);
    to_part.emplace(after, whole);
  }
  for (const LateValue& v : stored) {
    const Member& m = group.members[v.member];
    const Expr value = expr::substitute(pool, group.inlined(pool, v.value), to_whole);
    nest(m, {ir::make(scalar::Store{m.target, m.axes, value})});
  }
  return out;
}

Split choose_split(const Group& group, const Sizes& sizes, const ir::Program& program,
                   const algebra::Signs& signs, expr::ExprPool& pool, std::string* why) {
  ir::Environment hints;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) hints.sizes.emplace(d->name.str(), *d->hint);
  }
  Names scratch;
  const Tiling tiling(group, sizes, pool, scratch);
  const Expr count = count_tiles(group, tiling, pool);
  const Expr length = group.extents.at(group.stream);
  const std::string axis(group.stream.name().str());
  const auto at_hints = [&](Expr e) -> std::optional<int64_t> {
    for (Expr v : expr::free_vars(e)) {
      if (!hints.sizes.contains(v.name().str())) return std::nullopt;
    }
    return ir::evaluate_size(e, hints);
  };
  // Without an axis of rows the tiles are few, and stay few when the problem grows.
  const bool is_blocked = group.row_block > 0 && tiling.has_loop();
  const auto tiles = at_hints(count);
  const auto extent = at_hints(length);
  int64_t steps = extent ? *extent / sizes.step : 0;
  for (Expr a : group.outer) steps *= at_hints(group.extents.at(a)).value_or(1);
  // For the choice between one kernel and two; the number of parts is the plan's.
  const int64_t sms = group.target->board.sms;
  const target::Parts& parts = group.target->parts;
  const bool is_idle = tiles && extent && 2 * *tiles <= sms && steps >= parts.long_axis &&
                       steps >= 2 * least_steps(group, sizes);
  if (!is_blocked && !is_idle) return {};
  if (const auto refused = refuse_split(group, tiling, signs, pool)) {
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
  split.combines_last = is_blocked && state_elements(group, sizes) <= parts.few_states &&
                        !refuse_last_tile(group, tiling, sizes);
  return split;
}

}  // namespace nautilus::schedule

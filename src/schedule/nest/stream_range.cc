// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/stream_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "expr/bounds/affine.h"
#include "expr/conjuncts.h"
#include "expr/scalar_ops.h"
#include "expr/walk.h"
#include "schedule/nest/mask_intervals.h"

namespace nautilus::schedule {

using decision::LiveKind;
using expr::Op;
using expr::Poly;

namespace {

bool has_identity_limit(const Member& m) {
  return is_float(m.dtype) && (m.reducer == expr::Reducer::Sum || m.reducer == expr::Reducer::Max ||
                               m.reducer == expr::Reducer::Min);
}

Limit identity_limit(const Member& m) { return limit_of(expr::identity(m.reducer, m.dtype).f); }

// As Group::inlined, but the reads of guarded members stay.
Expr inlined_up_to(const Fusion& fusion, const std::unordered_map<Expr, Limit>& stops, Expr e,
                   expr::ExprPool& pool) {
  std::unordered_map<Expr, Expr> memo;
  auto go = [&](auto& self, Expr value) -> Expr {
    return expr::rebuild(pool, value, [&](Expr x) {
      if (x.op() != Op::Read || stops.contains(x)) return x;
      const Member* m = fusion.find(x);
      if (!m || m->is_reduction()) return x;
      if (const auto it = memo.find(x); it != memo.end()) return it->second;
      const Expr inner = self(self, m->value);
      memo.emplace(x, inner);
      return inner;
    });
  };
  return go(go, e);
}

// No position is further away: numbers beyond say the same as these, and sums with them do not
// wrap.
constexpr int64_t kFar = int64_t{1} << 30;

class MaskBounds {
 public:
  MaskBounds(const FusionScope& scope, const Tiling& tiling)
      : fusion_(scope.fusion),
        tiling_(tiling),
        pool_(scope.pool),
        reads_(fusion_, tiling, scope.program, pool_, [](Expr, Expr, bool) { return Expr(); }) {}

  // Takes what a conjunct says about the streamed axis; false if it says nothing usable.
  bool add(Expr c) {
    if (!expr::is_comparison(c.op()) || c[0].dtype() != expr::DType::I64) return false;
    const auto p = expr::difference(c[0], c[1]);
    if (!p) return false;
    switch (c.op()) {
      case Op::Le:
        return at_most_zero(*p);
      case Op::Lt:
        return at_most_zero(expr::plus(*p, 1));
      case Op::Ge:
        return at_most_zero(expr::negated(*p));
      case Op::Gt:
        return at_most_zero(plus_one(expr::negated(*p)));
      case Op::Eq: {
        const bool is_above = at_most_zero(*p);
        return at_most_zero(expr::negated(*p)) || is_above;
      }
      default:
        return false;
    }
  }

  std::vector<Expr> ends;  // exclusive
  std::vector<Expr> begins;
  expr::Substitution limited;  // numbers of the whole tile that were read, and as positions

 private:
  // A number of up to 32 bits that all rows and steps of the tile share.
  bool is_tile_number(Expr atom) const {
    const Expr read = atom.op() == Op::Cast ? atom[0] : atom;
    return read.op() == Op::Read && expr::is_int(read.dtype()) && expr::bytes(read.dtype()) <= 4 &&
           reads_.is_uniform(read);
  }

  static std::optional<Poly> plus_one(const std::optional<Poly>& p) {
    return p ? expr::plus(*p, 1) : std::nullopt;
  }

  // p <= 0
  bool at_most_zero(const std::optional<Poly>& p) {
    if (!p) return false;
    const auto parts = p->split(fusion_.stream);
    if (!parts) return false;
    const auto slope = parts->first.constant();
    if (!slope || (*slope != 1 && *slope != -1)) return false;
    const auto rest =
        *slope == 1 ? plus_one(expr::negated(parts->second)) : std::optional<Poly>(parts->second);
    if (!rest) return false;
    const Expr e = over_rows(*rest, *slope == 1);
    if (!e) return false;
    (*slope == 1 ? ends : begins).push_back(e);
    return true;
  }

  // Largest or least value over the rows of a warp group's tile; null if that is not affine.
  Expr over_rows(const Poly& p, bool is_largest) {
    expr::Substitution positions;
    for (Expr atom : p.atoms()) {
      if (atom == fusion_.row) continue;
      if (is_tile_number(atom)) {
        const Expr low = pool_.binary(Op::Max, atom, pool_.integer(-kFar));
        positions.emplace(atom, pool_.binary(Op::Min, low, pool_.integer(kFar)));
        continue;
      }
      // Scalars of the call, such as `i64(width)`, are the same in every tile.
      if (!expr::tensors_read(atom).empty()) return {};
      for (Expr v : expr::free_vars(atom)) {
        if (v == fusion_.row || fusion_.is_tile_axis(v)) return {};
      }
    }
    const auto parts = p.split(fusion_.row);
    if (!parts) return {};
    const auto slope = parts->first.constant();
    if (!slope) return {};
    Expr e = expr::substitute(pool_, expr::to_expr(pool_, parts->second), positions);
    limited.insert(positions.begin(), positions.end());
    if (*slope == 0) return e;
    const bool is_last = (*slope > 0) == is_largest;
    Expr row = tiling_.first_row();
    if (is_last) row = pool_.binary(Op::Add, row, pool_.integer(tiling_.group_rows() - 1));
    if (*slope != 1) row = pool_.binary(Op::Mul, row, pool_.integer(*slope));
    return expr::canonical_index(pool_, pool_.binary(Op::Add, e, row));
  }

  const Fusion& fusion_;
  const Tiling& tiling_;
  expr::ExprPool& pool_;
  MaskIntervals reads_;
};

}  // namespace

Limit limit_beyond(const FusionScope& scope, Expr e, const std::vector<RangeGuard>& guards) {
  std::unordered_map<Expr, Limit> values;
  for (const RangeGuard& g : guards)
    values.emplace(scope.fusion.members[g.member].read, limit_of(g.value));
  return limit_of(inlined_up_to(scope.fusion, values, e, scope.pool), values, scope.signs);
}

bool is_identity_beyond(const FusionScope& scope, const Member& rolled,
                        const std::vector<RangeGuard>& guards) {
  return has_identity_limit(rolled) &&
         limit_beyond(scope, rolled.value, guards) == identity_limit(rolled);
}

std::optional<RangeGuard> range_guard(const FusionScope& scope, const Member& rolled,
                                      const std::vector<RangeGuard>& present,
                                      const std::vector<size_t>& candidates) {
  if (!has_identity_limit(rolled)) return std::nullopt;
  auto works = [&](const RangeGuard& g) {
    std::vector<RangeGuard> all = present;
    all.push_back(g);
    return is_identity_beyond(scope, rolled, all);
  };
  auto is_taken = [&](size_t k) {
    return std::any_of(present.begin(), present.end(),
                       [&](const RangeGuard& g) { return g.member == k; });
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  // The condition is free in selects that end in the value, costs a select in other element-wise
  // tiles, and one more tile for results of inner reductions.
  for (const int kind : {0, 1, 2}) {
    for (size_t k : candidates) {
      const Member& m = scope.fusion.members[k];
      if (!is_float(m.dtype) || (kind == 2) != m.is_reduction() || is_taken(k)) continue;
      for (const double value : {-inf, 0.0, inf}) {
        const bool is_select = m.value.op() == Op::Select && m.value[2].op() == Op::FloatConst &&
                               m.value[2].number() == value;
        if (kind == 0 && !is_select) continue;
        const RangeGuard g{k, value};
        if (works(g)) return g;
      }
    }
  }
  return std::nullopt;
}

// Whether a reduction does not begin with the identity of its reducer.
static bool has_first_element(const Fusion& fusion, const std::vector<size_t>& rolled) {
  return std::any_of(rolled.begin(), rolled.end(), [&](size_t k) {
    const Member& m = fusion.members[k];
    if (!m.init || !expr::is_float(m.dtype)) return false;
    return m.init.op() != Op::FloatConst || m.init.number() != expr::identity(m.reducer, m.dtype).f;
  });
}

// The steps that masks hide: where they make every term of every rolled reduction its identity.
struct HidingMasks {
  std::vector<Expr> masks;      // that bound the steps by arithmetic
  std::vector<Expr> positions;  // the parts of them that do
  std::vector<Expr> others;     // parts that say nothing by arithmetic alone
  std::vector<Expr> begins;     // bounds
  std::vector<Expr> ends;
  expr::Substitution instead;
};

static HidingMasks hiding_masks(const FusionScope& scope, const std::vector<size_t>& rolled,
                                const Tiling& tiling) {
  const Fusion& fusion = scope.fusion;
  expr::ExprPool& pool = scope.pool;
  std::vector<Expr> terms;
  bool is_maskable = true;
  for (size_t k : rolled) {
    is_maskable &= has_identity_limit(fusion.members[k]);
    terms.push_back(fusion.inlined(pool, fusion.members[k].value));
  }
  std::vector<Expr> masks;
  for (Expr t : terms) {
    expr::for_each(t, [&](Expr e) {
      if (e.op() == Op::Select && expr::depends_on(e[0], fusion.stream) &&
          std::find(masks.begin(), masks.end(), e[0]) == masks.end())
        masks.push_back(e[0]);
    });
  }
  MaskBounds bounds(scope, tiling);
  HidingMasks out;
  for (Expr mask : masks) {
    bool hides_all = is_maskable;
    for (size_t k = 0; hides_all && k < rolled.size(); ++k) {
      const Expr hidden = expr::rebuild(
          pool, terms[k], [&](Expr e) { return e.op() == Op::Select && e[0] == mask ? e[2] : e; });
      hides_all = limit_of(hidden, {}, scope.signs) == identity_limit(fusion.members[rolled[k]]);
    }
    if (!hides_all) continue;
    // Of a condition that shares parts with itself there could be more than anyone waits for.
    const bool is_small = mask.tree_size() <= 4096;
    bool is_used = false;
    for (Expr c : is_small ? expr::conjuncts(mask) : std::vector<Expr>{mask}) {
      const bool is_bound = bounds.add(c);
      const Expr limited = is_bound ? expr::substitute(pool, c, bounds.limited) : c;
      if (limited != c) out.instead.emplace(c, limited);
      if (is_bound) out.positions.push_back(c);
      if (!is_bound && std::find(out.others.begin(), out.others.end(), c) == out.others.end())
        out.others.push_back(c);
      is_used |= is_bound;
    }
    if (is_used) out.masks.push_back(mask);
  }
  out.begins = std::move(bounds.begins);
  out.ends = std::move(bounds.ends);
  return out;
}

// The chosen kind, with the steps that data leave in `range.live`; or why the kind that was asked
// for is refused.
static void take_way(const FusionScope& scope, const Tiling& tiling, const HidingMasks& hiding,
                     std::optional<LiveKind> asked, StepRange& range, Names& names) {
  const auto by_data = [&](std::optional<StepsForm> form, Names& taken) {
    const bool is_empty =
        hiding.others.empty() && (form != StepsForm::List || hiding.positions.empty());
    return is_empty ? LiveSteps{}
                    : live_steps(scope, tiling, hiding.others, hiding.positions, form, taken);
  };
  const std::string axis(scope.fusion.stream.name().str());
  if (!asked) {
    range.live = by_data({}, names);
    if (range.live.first) {
      range.kind = range.live.listed ? LiveKind::List : LiveKind::DataRange;
    } else if (!hiding.masks.empty()) {
      range.kind = LiveKind::Range;
    }
    return;
  }
  switch (*asked) {
    case LiveKind::All: {
      Names scratch = names;
      if (hiding.masks.empty() && !by_data({}, scratch).first)
        range.refused = fmt::format("no mask hides whole steps of `{}`", axis);
      break;
    }
    case LiveKind::Range:
      if (hiding.masks.empty())
        range.refused = fmt::format("no mask bounds `{}` by positions", axis);
      break;
    case LiveKind::DataRange:
      range.live = by_data(StepsForm::Range, names);
      if (!range.live.first)
        range.refused =
            fmt::format("no mask compares data of a row with data or positions of `{}`", axis);
      break;
    case LiveKind::List:
      range.live = by_data(StepsForm::List, names);
      if (!range.live.listed)
        range.refused = fmt::format(
            "no mask has extremes in a tile of rows and a step of `{}` that say where it is false",
            axis);
      break;
  }
  if (range.refused.empty()) range.kind = asked;
}

// Masks bound the steps at one place of the outer axes; here are all of them.
static StepRange steps_of_all_places(const FusionScope& scope, const TileAxis& stream,
                                     std::optional<LiveKind> asked) {
  expr::ExprPool& pool = scope.pool;
  StepRange all;
  all.first = pool.integer(0);
  // The loop always has a first step; that of an empty sum reads zeros.
  all.count = count_steps(scope.fusion, stream.size, pool);
  if (all.count.op() != Op::IntConst) all.count = pool.binary(Op::Max, all.count, pool.integer(1));
  if (asked) all.refused = "the loop runs over the places of several axes, all of them";
  return all;
}

// The first step and the number after the last one between bounds by arithmetic.
static void bound_steps(const TileAxis& stream, const std::vector<Expr>& begins,
                        const std::vector<Expr>& ends, StepRange& range, expr::ExprPool& pool) {
  Expr begin = pool.integer(0);
  Expr end = stream.extent;
  for (Expr b : begins) begin = pool.binary(Op::Max, begin, b);
  for (Expr e : ends) end = pool.binary(Op::Min, end, e);
  const Expr step = pool.integer(stream.size);
  range.first = begin.is_int(0) ? begin : pool.binary(Op::FloorDiv, begin, step);
  const Expr rounded = pool.binary(Op::Add, end, pool.integer(stream.size - 1));
  range.count = pool.binary(
      Op::FloorDiv, end == stream.extent ? expr::canonical_index(pool, rounded) : rounded, step);
}

StepRange step_range(const FusionScope& scope, const std::vector<size_t>& rolled,
                     const Tiling& tiling, std::optional<LiveKind> asked, Names& names) {
  expr::ExprPool& pool = scope.pool;
  const TileAxis& stream = tiling.at(scope.fusion.stream);
  if (!scope.fusion.outer.empty()) return steps_of_all_places(scope, stream, asked);
  const HidingMasks hiding = hiding_masks(scope, rolled, tiling);
  StepRange range;
  take_way(scope, tiling, hiding, asked, range, names);
  const bool runs_all = range.kind == LiveKind::All;
  if (!runs_all) {
    range.masks = hiding.masks;
    range.instead = hiding.instead;
  }
  for (Expr c : range.live.settled) {
    Expr& written = range.instead.try_emplace(c, c).first->second;
    written = pool.binary(Op::Or, range.live.full, written);
  }
  if (range.live.listed) {
    range.first = range.live.first;
    range.count = pool.binary(Op::Max, pool.integer(1), range.live.end);
    return range;
  }
  const std::vector<Expr> none;
  bound_steps(stream, runs_all ? none : hiding.begins, runs_all ? none : hiding.ends, range, pool);
  if (range.live.first) {
    range.first = range.first.is_int(0) ? range.live.first
                                        : pool.binary(Op::Max, range.first, range.live.first);
    range.count = pool.binary(Op::Min, range.count, range.live.end);
  }
  // A step that is masked altogether changes nothing, and the loop always has a first step, even if
  // a reduction has an initial element and no step is peeled.
  if (range.kind || has_first_element(scope.fusion, rolled)) {
    const Expr least = range.first.is_int(0) ? pool.integer(1)
                                             : pool.binary(Op::Add, range.first, pool.integer(1));
    range.count = pool.binary(Op::Max, least, range.count);
  }
  return range;
}

}  // namespace nautilus::schedule

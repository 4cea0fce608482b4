// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/mask_intervals.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "expr/walk.h"
#include "ir/decl.h"

namespace nautilus::schedule {

using expr::DType;
using expr::Op;

namespace {

// Indices, sizes and integers of up to 32 bits.
constexpr int kIndexBits = 32;
constexpr int kMaxBits = 60;
constexpr int kAllBits = std::numeric_limits<uint64_t>::digits;

// Values of this many bits; a value computed from sizes alone has not many more bits than the
// sizes.
int bits_of(Expr e) {
  if (e.op() == Op::Cast && expr::is_int(e[0].dtype())) return bits_of(e[0]);
  if (e.dtype() != DType::I64) return kIndexBits;
  return expr::tensors_read(e).empty() ? kIndexBits + 8 : kAllBits;
}

}  // namespace

MaskIntervals::MaskIntervals(const Fusion& fusion, const Tiling& tiling, const ir::Program& program,
                             expr::ExprPool& pool, Extreme extreme)
    : fusion_(fusion),
      tiling_(tiling),
      pool_(pool),
      extreme_(std::move(extreme)),
      facts_(ir::facts_of(program, pool)) {
  for (Expr a : tiling.order()) facts_.add_axis(a, tiling.at(a).extent);
  for (const ir::Op& op : program.body) {
    if (const auto* b = op.get<scalar::Buffer>()) tensors_.emplace(b->name, b->type);
  }
}

Expr MaskIntervals::both(Expr a, Expr b) { return !a ? b : !b ? a : binary(Op::And, a, b); }
Expr MaskIntervals::either(Expr a, Expr b) { return !a ? b : !b ? a : binary(Op::Or, a, b); }
Expr MaskIntervals::negated(Expr a) { return a ? pool_.unary(Op::Not, a) : a; }

// Every read stays inside its tensor without a condition around it, and is of a tensor that is
// there before the kernel runs. Columns of a tile are not summarised.
bool MaskIntervals::is_readable(Expr e) const {
  if (expr::has_reduce(e)) return false;
  for (Expr v : expr::free_vars(e)) {
    const bool is_axis = fusion_.extents.contains(v);
    if (is_axis && v != fusion_.row && v != fusion_.stream && tiling_.at(v).kind != AxisKind::Batch)
      return false;
  }
  bool ok = true;
  expr::for_each(e, [&](Expr x) {
    if (x.op() != Op::Read || !ok) return;
    const auto type = tensors_.find(x.name());
    ok = type != tensors_.end() && !fusion_.by_name(x.name());
    for (size_t k = 0; ok && k < x.args().size(); ++k) {
      ok = facts_.prove(pool_.binary(Op::Ge, x[k], pool_.integer(0))) == expr::Truth::True &&
           facts_.prove(pool_.binary(Op::Lt, x[k], type->second.dims[k])) == expr::Truth::True;
    }
  });
  return ok;
}

bool MaskIntervals::is_uniform(Expr e) const {
  return !expr::depends_on(e, fusion_.row) && !expr::depends_on(e, fusion_.stream) &&
         is_readable(e);
}

// Positions and sizes alone: the interval follows from the tile's number.
bool MaskIntervals::is_plain_index(Expr e) const {
  bool ok = e.dtype() == DType::I64;
  expr::for_each(e, [&](Expr x) {
    ok &= x.op() == Op::Var || x.op() == Op::IntConst || x.op() == Op::Add || x.op() == Op::Sub ||
          x.op() == Op::Mul || x.op() == Op::Neg;
    ok &= x.op() != Op::Mul || x[0].op() == Op::IntConst || x[1].op() == Op::IntConst;
  });
  return ok;
}

std::optional<MaskIntervals::Interval> MaskIntervals::interval(Expr e) {
  if (e.dtype() == DType::Bool) return std::nullopt;
  if (is_uniform(e)) {
    const Expr x = is_float(e.dtype()) ? e : pool_.cast(DType::I64, e);
    return Interval{x, x, bits_of(e)};
  }
  const bool has_row = expr::depends_on(e, fusion_.row);
  const bool has_stream = expr::depends_on(e, fusion_.stream);
  if (has_row != has_stream && !is_plain_index(e)) return summarised(e);
  return is_float(e.dtype()) ? std::nullopt : computed(e);
}

std::optional<MaskIntervals::Interval> MaskIntervals::summarised(Expr e) {
  if (!is_readable(e)) return std::nullopt;
  const Expr axis = expr::depends_on(e, fusion_.row) ? fusion_.row : fusion_.stream;
  const Expr value = is_float(e.dtype()) ? e : pool_.cast(DType::I64, e);
  return Interval{extreme_(value, axis, false), extreme_(value, axis, true), bits_of(e)};
}

// Integers narrower than i64 wrap: an interval that leaves them may be anything.
MaskIntervals::Interval MaskIntervals::wrapped(Interval x, DType dtype) {
  if (dtype == DType::I64) return x;
  const Expr low = pool_.integer(expr::int_min(dtype));
  const Expr high = pool_.integer(expr::int_max(dtype));
  const Expr fits = both(binary(Op::Ge, x.least, low), binary(Op::Le, x.most, high));
  return {pool_.select(fits, x.least, low), pool_.select(fits, x.most, high), kIndexBits};
}

std::optional<MaskIntervals::Interval> MaskIntervals::computed(Expr e) {
  if (e == fusion_.row || e == fusion_.stream) {
    const TileAxis& t = tiling_.at(e);
    const Expr first = binary(Op::Mul, t.tile, pool_.integer(t.size));
    const Expr last = binary(Op::Add, first, pool_.integer(t.size - 1));
    const Expr end = binary(Op::Add, t.extent, pool_.integer(-1));
    return Interval{first, binary(Op::Min, last, end), kIndexBits};
  }
  if (e.args().empty() || e.op() == Op::Read || e.op() == Op::Select) return std::nullopt;
  const auto x = interval(e[0]);
  if (!x || is_float(e[0].dtype())) return std::nullopt;
  if (e.op() == Op::Cast) {
    return expr::holds_every_value(e.dtype(), e[0].dtype()) ? x : std::optional<Interval>();
  }
  const Expr zero = pool_.integer(0);
  const auto minus = [&](const Interval& v) {
    return Interval{binary(Op::Sub, zero, v.most), binary(Op::Sub, zero, v.least), v.bits + 1};
  };
  const auto checked = [&](Interval v) -> std::optional<Interval> {
    if (v.bits > kMaxBits) return std::nullopt;
    return wrapped(v, e.dtype());
  };
  if (x->bits > kMaxBits) return std::nullopt;
  if (e.op() == Op::Neg) return checked(minus(*x));
  if (e.op() == Op::Abs) {
    const Interval m = minus(*x);
    return checked({binary(Op::Max, zero, binary(Op::Max, x->least, m.least)),
                    binary(Op::Max, x->most, m.most), m.bits});
  }
  if (e.args().size() != 2) return std::nullopt;
  auto y = interval(e[1]);
  if (!y || y->bits > kMaxBits) return std::nullopt;
  const int bits = std::max(x->bits, y->bits);
  switch (e.op()) {
    case Op::Sub:
      y = minus(*y);
      [[fallthrough]];
    case Op::Add:
      return checked({binary(Op::Add, x->least, y->least), binary(Op::Add, x->most, y->most),
                      std::max(x->bits, y->bits) + 1});
    case Op::Min:
    case Op::Max:
      return Interval{binary(e.op(), x->least, y->least), binary(e.op(), x->most, y->most), bits};
    case Op::Mul: {
      const bool is_first = e[0].op() == Op::IntConst;
      if (!is_first && e[1].op() != Op::IntConst) return std::nullopt;
      const Expr factor = is_first ? e[0] : e[1];
      const Interval& v = is_first ? *y : *x;
      const Expr wide = pool_.integer(factor.integer());
      const auto magnitude = static_cast<uint64_t>(std::llabs(factor.integer()));
      Interval product{binary(Op::Mul, wide, v.least), binary(Op::Mul, wide, v.most),
                       v.bits + static_cast<int>(std::bit_width(magnitude))};
      if (factor.integer() < 0) std::swap(product.least, product.most);
      return checked(product);
    }
    default:
      return std::nullopt;
  }
}

TileTruth MaskIntervals::less(const Interval& x, const Interval& y, bool or_equal) {
  const Op op = or_equal ? Op::Le : Op::Lt;
  return {binary(op, x.least, y.most), binary(op, x.most, y.least)};
}

TileTruth MaskIntervals::comparison(Expr c) {
  const auto x = interval(c[0]);
  const auto y = x ? interval(c[1]) : std::nullopt;
  if (!y) return {};
  // Extremes pass over NaN, for which every comparison but != is false: something may hold, but
  // nothing is sure to.
  const bool has_nan = is_float(c[0].dtype());
  TileTruth t;
  switch (c.op()) {
    case Op::Lt:
    case Op::Le:
      t = less(*x, *y, c.op() == Op::Le);
      break;
    case Op::Gt:
    case Op::Ge:
      t = less(*y, *x, c.op() == Op::Ge);
      break;
    case Op::Eq:
    case Op::Ne: {
      const TileTruth up = less(*x, *y, true);
      const TileTruth down = less(*y, *x, true);
      t = {both(up.may, down.may), both(up.must, down.must)};
      if (c.op() == Op::Ne) t = {has_nan ? Expr() : negated(t.must), negated(t.may)};
      break;
    }
    default:
      return {};
  }
  return has_nan ? without_must(t) : t;
}

TileTruth MaskIntervals::truth(Expr c) {
  if (is_uniform(c)) return {c, c};
  switch (c.op()) {
    case Op::And: {
      const TileTruth a = truth(c[0]);
      const TileTruth b = truth(c[1]);
      return {both(a.may, b.may), a.must && b.must ? both(a.must, b.must) : Expr()};
    }
    case Op::Or: {
      const TileTruth a = truth(c[0]);
      const TileTruth b = truth(c[1]);
      return {a.may && b.may ? either(a.may, b.may) : Expr(), either(a.must, b.must)};
    }
    case Op::Not: {
      const TileTruth a = truth(c[0]);
      return {negated(a.must), negated(a.may)};
    }
    default:
      break;
  }
  if (expr::is_comparison(c.op())) {
    if (const TileTruth t = comparison(c); t.may) return t;
  }
  return flag(c);
}

// The value of a condition at every point of the tile.
TileTruth MaskIntervals::flag(Expr c) {
  const bool has_row = expr::depends_on(c, fusion_.row);
  const bool has_stream = expr::depends_on(c, fusion_.stream);
  if (!is_readable(c) || (!has_row && !has_stream)) return {};
  const bool has_both = has_row && has_stream;
  if (has_both && (expr::tensors_read(c).empty() || !is_shared(c))) return {};
  const Expr value = pool_.select(c, pool_.integer(1), pool_.integer(0));
  const Expr axis = has_both ? Expr() : has_row ? fusion_.row : fusion_.stream;
  const Expr most = extreme_(value, axis, true);
  if (!most) return {};
  const Expr zero = pool_.integer(0);
  return {binary(Op::Ne, most, zero), binary(Op::Ne, extreme_(value, axis, false), zero)};
}

bool MaskIntervals::is_shared(Expr c) const {
  const auto& order = tiling_.order();
  return std::any_of(order.begin(), order.end(), [&](Expr a) {
    return tiling_.at(a).kind == AxisKind::Batch && !expr::depends_on(c, a);
  });
}

}  // namespace nautilus::schedule

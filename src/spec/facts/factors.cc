// SPDX-License-Identifier: Apache-2.0
#include "spec/facts/factors.h"

#include <algorithm>
#include <unordered_set>

#include "ir/target_of.h"
#include "spec/equations.h"
#include "spec/facts/ranges.h"

namespace nautilus::spec {

using expr::Expr;
using expr::Op;

namespace {
// Equations share their parts; written out as trees they may be too large to look at.
constexpr int kMaxFactorSteps = 2000;

bool is_zero(Expr e) { return e.op() == Op::FloatConst && e.number() == 0; }
}  // namespace

Factors::Factors(const ir::Program& program, expr::ExprPool& pool, const Equations& equations)
    : whole_depth_(ir::target_of(program).tiles.whole_depth),
      pool_(pool),
      equations_(equations),
      facts_(ir::facts_of(program, pool)),
      types_(tensor_types(program)),
      values_(program, pool, equations),
      magnitudes_(program, pool, equations) {}

void Factors::open(const Let& let) {
  reduction_ = let.body;
  reduced_.clear();
  for (size_t k = 0; k < reduction_.axis_count(); ++k) reduced_.push_back(reduction_.axis(k));
  outer_ = facts_;
  for (const ir::Axis& a : let.axes) outer_.add_axis(pool_.index(a.name), a.extent);
  steps_ = 0;
}

Split Factors::split(Expr term, bool may_count) {
  may_count_ = may_count;
  return part(term, Guard::None, false);
}

bool Factors::is_harmless(Expr e, bool is_divisor) {
  return values_.is_finite(e) && (!is_divisor || values_.is_nonzero(e));
}

bool Factors::is_representable(Expr e, bool is_divisor) {
  return is_divisor ? magnitudes_.is_away_from_zero(e) : magnitudes_.is_in_range(e);
}

Expr Factors::of_empty_sum(const Factor& f) {
  if (is_harmless(f.value, f.is_divisor) && is_representable(f.value, f.is_divisor)) return f.value;
  Expr is_empty;
  for (size_t k = 0; k < reduction_.axis_count(); ++k) {
    const Expr extent = reduction_.extent(k);
    const Expr has_terms = pool_.binary(Op::Ge, extent, pool_.integer(1));
    if (facts_.prove(has_terms) == expr::Truth::True) continue;
    const Expr c = pool_.binary(Op::Le, extent, pool_.integer(0));
    is_empty = is_empty ? pool_.binary(Op::Or, is_empty, c) : c;
  }
  if (!is_empty) return f.value;
  return pool_.select(is_empty, pool_.constant(f.is_divisor ? 1 : 0, f.value.dtype()), f.value);
}

// One level of element-wise equations deep. An addend without the reduced axis keeps the sum
// together: taking x - mean(x) apart would cancel.
std::vector<std::pair<Expr, bool>> Factors::addends(Expr e, bool is_negative) {
  const std::vector<std::pair<Expr, bool>> whole = {{e, is_negative}};
  if (++steps_ > kMaxFactorSteps || !is_reduced(e)) return whole;
  switch (e.op()) {
    case Op::Add:
    case Op::Sub: {
      if (!is_reduced(e[0]) || !is_reduced(e[1])) return whole;
      auto out = addends(e[0], is_negative);
      for (auto& x : addends(e[1], (e.op() == Op::Sub) != is_negative)) out.push_back(x);
      return out;
    }
    case Op::Mul:
      for (const size_t k : {size_t{0}, size_t{1}}) {
        const auto parts = addends(e[k], is_negative);
        if (parts.size() < 2 || parts.size() > kMaxTerms) continue;
        std::vector<std::pair<Expr, bool>> out;
        for (const auto& [x, sign] : parts)
          out.emplace_back(pool_.binary(Op::Mul, k == 0 ? x : e[0], k == 0 ? e[1] : x), sign);
        return out;
      }
      return whole;
    case Op::Read: {
      const auto it = equations_.find(e.name());
      if (it == equations_.end() || expr::has_reduce(it->second.body)) return whole;
      const auto parts = addends(body_at(it->second, e, pool_), is_negative);
      return parts.size() < 2 ? whole : parts;
    }
    default:
      return whole;
  }
}

// Whether a condition holds at the first place of the reduced axes.
bool Factors::holds_first(Expr condition) {
  expr::Substitution first;
  for (Expr axis : reduced_) first.emplace(axis, pool_.integer(0));
  return outer_.prove(expr::substitute(pool_, condition, first)) == expr::Truth::True;
}

bool Factors::is_reduced(Expr e) const {
  return std::any_of(reduced_.begin(), reduced_.end(),
                     [&](Expr axis) { return expr::depends_on(e, axis); });
}

// Whether an element along the reduced axes depends on a reduction that has a loop of its own.
bool Factors::follows_long_reduction(Expr read) {
  if (++steps_ > kMaxFactorSteps || !is_reduced(read)) return false;
  const auto it = equations_.find(read.name());
  if (it == equations_.end()) return false;
  const Expr body = it->second.body;
  if (body.op() == Op::Reduce) {
    for (size_t k = 0; k < body.axis_count(); ++k) {
      const Expr extent = body.extent(k);
      if (extent.op() != Op::IntConst || extent.integer() > whole_depth_) return true;
    }
    return false;
  }
  bool is_behind = false;
  expr::for_each(body_at(it->second, read, pool_), [&](Expr e) {
    is_behind |= !is_behind && e.op() == Op::Read && follows_long_reduction(e);
  });
  return is_behind;
}

// Equations that reduce along an axis like those of the sum, among all that the value needs.
std::set<std::string_view> Factors::reductions_alike(Expr e) const {
  std::set<std::string_view> out;
  std::unordered_set<expr::Name> seen;
  auto collect = [&](auto& self, Expr value) -> void {
    expr::for_each(value, [&](Expr x) {
      if (x.op() != Op::Read || !seen.insert(x.name()).second) return;
      const auto it = equations_.find(x.name());
      if (it == equations_.end()) return;
      const Expr body = it->second.body;
      for (size_t k = 0; body.op() == Op::Reduce && k < body.axis_count(); ++k) {
        for (size_t r = 0; r < reduction_.axis_count(); ++r) {
          if (body.extent(k) == reduction_.extent(r)) out.insert(x.name().str());
        }
      }
      self(self, body);
    });
  };
  collect(collect, e);
  return out;
}

// Whether the leaving factor needs a reduction along the sum's axis that the staying factors do not
// need.
bool Factors::waits_for_axis(const Split& split) const {
  const std::set<std::string_view> known = reductions_alike(split.staying);
  return std::any_of(split.leaving.begin(), split.leaving.end(), [&](const Factor& f) {
    const std::set<std::string_view> needed = reductions_alike(f.value);
    return !std::includes(known.begin(), known.end(), needed.begin(), needed.end());
  });
}

// `is_below`: the value divides.
Split Factors::part(Expr e, Guard guard, bool is_below) {
  const Split none{{}, e, false};
  if (++steps_ > kMaxFactorSteps) return none;
  if (!is_reduced(e)) return whole_factor(e, guard, is_below);
  switch (e.op()) {
    case Op::Mul: {
      Split a = part(e[0], guard, is_below);
      const Split b = part(e[1], guard, is_below);
      a.leaving.insert(a.leaving.end(), b.leaving.begin(), b.leaving.end());
      if (a.leaving.empty()) return none;
      a.staying = !a.staying   ? b.staying
                  : !b.staying ? a.staying
                               : pool_.binary(Op::Mul, a.staying, b.staying);
      return a;
    }
    case Op::Div: {
      Split a = part(e[0], guard, is_below);
      Split b = part(e[1], guard, !is_below);
      for (Factor& f : b.leaving) {
        f.is_divisor = !f.is_divisor;
        a.leaving.push_back(f);
      }
      if (a.leaving.empty()) return none;
      if (b.staying) {
        const Expr above = a.staying ? a.staying : pool_.constant(1, e.dtype());
        a.staying = pool_.binary(Op::Div, above, b.staying);
      }
      return a;
    }
    case Op::Neg: {
      Split a = part(e[0], guard, is_below);
      if (a.leaving.empty() || !a.staying) return none;
      a.staying = pool_.unary(Op::Neg, a.staying);
      return a;
    }
    case Op::Select:
      return guarded(e, guard, is_below);
    case Op::Read: {
      const auto it = equations_.find(e.name());
      if (it == equations_.end() || expr::has_reduce(it->second.body)) return none;
      Split a = part(body_at(it->second, e, pool_), guard, is_below);
      if (a.leaving.empty() || !a.staying) return none;
      return waits_for_axis(a) || !follows_long_reduction(e) ? a : none;
    }
    default:
      return none;
  }
}

Split Factors::whole_factor(Expr e, Guard guard, bool is_below) {
  const Split none{{}, e, false};
  if (e.is_const()) return none;
  // Outside its guard, and where there are no terms, the value must still be readable.
  if (guard != Guard::None ? !are_inside(e, types_, outer_, pool_)
                           : !are_inside_without_terms(e, reduction_, types_, outer_, pool_))
    return none;
  Factor f{e, false};
  if (guard == Guard::HidesAll) {
    // Where a guard hides every term the sum is 0, whatever would have been divided by: the factor
    // must not be infinite, nor the divisor 0.
    const bool may_spoil = !is_harmless(e, is_below);
    if (may_spoil && !may_count_) return none;
    if (may_spoil) f.shown = pool_.constant(1, e.dtype());
    f.may_overflow = !may_spoil && !is_representable(e, is_below);
  }
  return {{f}, {}, false};
}

Split Factors::guarded(Expr e, Guard guard, bool is_below) {
  const Split none{{}, e, false};
  const bool is_first = is_zero(e[2]);
  if (!is_first && !is_zero(e[1])) return none;
  // Where the first place is never hidden, the guard hides no row altogether.
  const Guard inside =
      is_first && holds_first(e[0]) ? std::max(guard, Guard::Reads) : Guard::HidesAll;
  Split a = part(is_first ? e[1] : e[2], inside, is_below);
  if (a.leaving.empty()) return none;
  if (!a.staying) a.staying = pool_.constant(1, e.dtype());
  const Expr zero = pool_.constant(0, e.dtype());
  const auto around = [&](Expr x) {
    return is_first ? pool_.select(e[0], x, zero) : pool_.select(e[0], zero, x);
  };
  a.staying = around(a.staying);
  for (Factor& f : a.leaving) {
    if (f.shown) f.shown = around(f.shown);
  }
  return a;
}

}  // namespace nautilus::spec

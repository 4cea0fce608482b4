// SPDX-License-Identifier: Apache-2.0
#include "lower/rows/row_moving_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "expr/walk.h"

namespace nautilus::lower {

using expr::DType;
using expr::Expr;
using EK = expr::Op;

namespace {

Expr is_finite_value(Expr x, expr::ExprPool& pool) {
  const Expr inf = pool.constant(std::numeric_limits<double>::infinity(), x.dtype());
  return pool.binary(EK::Lt, pool.unary(EK::Abs, x), inf);
}

// How far a reference moved; 0 to one that is no number.
Expr finite_distance(Expr before, Expr after, expr::ExprPool& pool) {
  const Expr d = pool.binary(EK::Sub, after, before);
  return pool.select(is_finite_value(d, pool), d, pool.constant(0, d.dtype()));
}

}  // namespace

ir::Name RowMovingOps::tile(std::string_view stem) {
  const ir::Name name = scope_.add_tile(stem, DType::F32, false);
  scope_.moving.insert(name);
  return name;
}

ir::Name RowMovingOps::zero(std::string_view stem, ir::Block& out) {
  const ir::Name name = tile(stem);
  set(name, pool_.constant(0, DType::F32), out);
  return name;
}

void RowMovingOps::set(ir::Name tile, Expr value, ir::Block& out) const {
  if (value == number(tile)) return;
  out.push_back(ir::make(matile::Set{tile, {}, value}));
}

void RowMovingOps::join(ir::Name tile, ir::Block& out) const {
  out.push_back(ir::make(matile::Lanes{tile, expr::Reducer::Sum}));
  out.push_back(ir::make(matile::Warps{tile, expr::Reducer::Sum}));
}

size_t RowMovingOps::reference(Expr value, std::string_view stem, ir::Block& out) {
  for (size_t k = 0; k < references_.size(); ++k) {
    if (references_[k].value == value) return k;
  }
  Reference r{value, zero(stem, out), {}, {}, false};
  r.next = tile(fmt::format("{}_next", stem));
  r.step = tile(fmt::format("{}_step", stem));
  expr::for_each(value, [&](Expr e) {
    const std::string name(e.op() == EK::Read ? e.name().str() : "");
    if (accs_.contains(name) && !now_.contains(name))
      now_.emplace(name, tile(fmt::format("{}_now", name)));
  });
  references_.push_back(std::move(r));
  return references_.size() - 1;
}

Expr RowMovingOps::about_next(size_t of, Expr term) const {
  expr::Substitution map;
  const RowMovingSum& sum = segment_.moving[of];
  for (size_t k = 0; k < sum.symbols.size(); ++k)
    map.emplace(sum.symbols[k], number(references_[references_of_[of][k]].next));
  return expr::substitute(pool_, term, map);
}

const RowMovingOps::Sum* RowMovingOps::sum_of(size_t of, size_t moment) const {
  const Expr term = about_next(of, segment_.moving[of].moments[moment].term);
  for (const Sum& s : sums_) {
    if (s.term == term) return &s;
  }
  return nullptr;
}

void RowMovingOps::add(size_t of, size_t moment, ir::Block& out) {
  const RowMovingSum& sum = segment_.moving[of];
  const algebra::Moment& m = sum.moments[moment];
  if (is_same_everywhere(m.term, scope_.group, pool_) || sum_of(of, moment)) return;
  Sum s{about_next(of, m.term), of, moment, 0, {}, {}};
  for (const algebra::Moment& other : sum.moments) {
    if (std::includes(other.by.begin(), other.by.end(), m.by.begin(), m.by.end()))
      s.height = std::max(s.height, other.by.size() - m.by.size());
  }
  const std::string stem = fmt::format("{}{}", scope_.group.statements[sum.statement].target.str(),
                                       moment == 0 ? "" : fmt::format("_d{}", moment));
  s.shares = zero(stem, out);
  s.whole = zero(fmt::format("{}_whole", stem), out);
  sums_.push_back(std::move(s));
}

void RowMovingOps::start(Expr all, ir::Block& out) {
  all_ = all;
  seen_ = zero("seen", out);
  for (size_t of = 0; of < segment_.moving.size(); ++of) {
    const RowMovingSum& sum = segment_.moving[of];
    std::vector<size_t>& own = references_of_.emplace_back();
    const std::string_view target = scope_.group.statements[sum.statement].target.str();
    for (Expr r : sum.references) own.push_back(reference(r, fmt::format("{}_ref", target), out));
    for (size_t n = 0; n < sum.moments.size(); ++n) add(of, n, out);
  }
  std::stable_sort(sums_.begin(), sums_.end(),
                   [](const Sum& a, const Sum& b) { return a.height > b.height; });
}

Expr RowMovingOps::moved(size_t of, size_t moment, const std::vector<Expr>& steps,
                         bool is_whole) const {
  const RowMovingSum& sum = segment_.moving[of];
  std::vector<algebra::Moment> moments;
  std::vector<Expr> sums;
  size_t own = 0;
  for (size_t n = 0; n < sum.moments.size(); ++n) {
    const Sum* s = sum_of(of, n);
    if (!s && !is_whole) continue;
    if (n == moment) own = moments.size();
    moments.push_back(sum.moments[n]);
    sums.push_back(s ? number(is_whole ? s->whole : s->shares)
                     : pool_.binary(EK::Mul, values_.rewrite(sum.moments[n].term), number(seen_)));
  }
  return algebra::moved_sum(pool_, moments, own, sums, steps);
}

void RowMovingOps::move(Expr more, ir::Block& out) {
  for (const auto& [target, tile] : now_) {
    set(tile, number(accs_.at(target)), out);
    join(tile, out);
  }
  const Expr seen = pool_.binary(EK::Add, number(seen_), more);
  for (const Reference& r : references_) {
    const Expr value = expr::rebuild(pool_, r.value, [&](Expr e) {
      const auto it = e.op() == EK::Read ? now_.find(std::string(e.name().str())) : now_.end();
      if (it == now_.end()) return e;
      return pool_.binary(EK::Mul, number(it->second), pool_.binary(EK::Div, all_, seen));
    });
    const Expr rewritten = values_.rewrite(value);
    set(r.next, rewritten, out);
    // What is no number yet does not move the sums.
    set(r.next, pool_.select(is_finite_value(number(r.next), pool_), number(r.next), number(r.now)),
        out);
    set(r.step, pool_.binary(EK::Sub, number(r.next), number(r.now)), out);
  }
  for (const Sum& s : sums_) {
    std::vector<Expr> steps;
    for (const size_t k : references_of_[s.of]) steps.push_back(number(references_[k].step));
    set(s.shares, moved(s.of, s.moment, steps, false), out);
    set(s.whole, moved(s.of, s.moment, steps, true), out);
  }
  set(seen_, seen, out);
  for (const Reference& r : references_) set(r.now, number(r.next), out);
}

void RowMovingOps::fold(ir::Block& out) {
  for (const Sum& s : sums_) {
    RowStatement terms = scope_.group.statements[segment_.moving[s.of].statement];
    terms.value = s.term;
    statements_.fold(terms, s.shares, false, out);
  }
}

void RowMovingOps::settle(const RowMovingSum& sum, ir::Block& out) {
  const auto of = static_cast<size_t>(&sum - segment_.moving.data());
  const Expr nothing = pool_.constant(0, DType::F32);
  std::vector<Expr> steps;
  Expr is_known;
  Expr lost;  // 0, or NaN where a reference is not finite to the end
  for (const size_t k : references_of_[of]) {
    Reference& r = references_[k];
    if (!std::exchange(r.is_settled, true)) {
      set(r.next, values_.rewrite(r.value), out);
      set(r.step, finite_distance(number(r.now), number(r.next), pool_), out);
    }
    steps.push_back(number(r.step));
    const Expr finite = is_finite_value(number(r.next), pool_);
    is_known = is_known ? pool_.binary(EK::And, is_known, finite) : finite;
    const Expr zero_of = pool_.binary(EK::Mul, number(r.next), nothing);
    lost = lost ? pool_.binary(EK::Add, lost, zero_of) : zero_of;
  }
  std::vector<Expr> sums;
  for (size_t n = 0; n < sum.moments.size(); ++n) {
    const Sum* s = sum_of(of, n);
    if (s && scope_.moving.contains(s->shares)) {
      join(s->shares, out);
      set(s->shares, pool_.binary(EK::Add, number(s->shares), number(s->whole)), out);
      scope_.moving.erase(s->shares);
    }
    sums.push_back(s ? number(s->shares)
                     : pool_.binary(EK::Mul, values_.rewrite(sum.moments[n].term), number(seen_)));
  }
  const RowStatement& statement = scope_.group.statements[sum.statement];
  const Expr moved_to_end = algebra::moved_sum(pool_, sum.moments, 0, sums, steps);
  // Nothing was counted: the sum is what it is, whatever the reference.
  const Expr is_empty = pool_.binary(EK::Eq, number(seen_), nothing);
  const Expr unknown = pool_.select(is_empty, sums[0], pool_.binary(EK::Add, sums[0], lost));
  const ir::Name result = scope_.add_tile(statement.target.str(), DType::F32, false);
  set(result, pool_.select(is_known, moved_to_end, unknown), out);
  statements_.result(statement, result, out);
}

}  // namespace nautilus::lower

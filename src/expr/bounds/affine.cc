// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds/affine.h"

#include <algorithm>

#include "expr/scalar_ops.h"
#include "expr/walk.h"

namespace nautilus::expr {
namespace {

constexpr size_t kMaxTerms = 200;
constexpr size_t kMaxDegree = 8;

bool atom_less(Expr a, Expr b) { return compare(a, b) < 0; }

Monomial merge(const Monomial& a, const Monomial& b) {
  Monomial out(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin(), atom_less);
  return out;
}

}  // namespace

bool MonomialLess::operator()(const Monomial& a, const Monomial& b) const {
  // Higher degrees first and the constant last, so that printing needs no sorting.
  if (a.size() != b.size()) return a.size() > b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (const int c = compare(a[i], b[i])) return c < 0;
  }
  return false;
}

bool Poly::add(const Monomial& monomial, int64_t coefficient) {
  if (coefficient == 0) return true;
  const auto [it, is_new] = terms_.emplace(monomial, coefficient);
  if (is_new) return true;
  if (__builtin_add_overflow(it->second, coefficient, &it->second)) return false;
  if (it->second == 0) terms_.erase(it);
  return true;
}

std::optional<int64_t> Poly::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

int64_t Poly::constant_term() const {
  const auto it = terms_.find({});
  return it == terms_.end() ? 0 : it->second;
}

std::vector<Expr> Poly::atoms() const {
  std::vector<Expr> out;
  for (const auto& [monomial, coefficient] : terms_) {
    for (Expr a : monomial) {
      if (std::find(out.begin(), out.end(), a) == out.end()) out.push_back(a);
    }
  }
  std::sort(out.begin(), out.end(), atom_less);
  return out;
}

std::optional<Poly> add(const Poly& a, const Poly& b, int64_t factor) {
  Poly out = a;
  for (const auto& [monomial, coefficient] : b.terms_) {
    int64_t scaled = 0;
    if (__builtin_mul_overflow(coefficient, factor, &scaled) || !out.add(monomial, scaled))
      return std::nullopt;
  }
  if (out.terms_.size() > kMaxTerms) return std::nullopt;
  return out;
}

std::optional<Poly> multiply(const Poly& a, const Poly& b) {
  Poly out;
  if (a.terms_.size() * b.terms_.size() > kMaxTerms) return std::nullopt;
  for (const auto& [x, cx] : a.terms_) {
    for (const auto& [y, cy] : b.terms_) {
      int64_t c = 0;
      if (x.size() + y.size() > kMaxDegree || __builtin_mul_overflow(cx, cy, &c) ||
          !out.add(merge(x, y), c)) {
        return std::nullopt;
      }
    }
  }
  return out;
}

std::optional<Poly> difference(Expr a, Expr b) {
  const auto x = Poly::of(a);
  const auto y = Poly::of(b);
  return x && y ? add(*x, *y, -1) : std::nullopt;
}

std::optional<Poly> negated(const Poly& p) { return add(Poly(), p, -1); }
std::optional<Poly> plus(const Poly& p, int64_t c) { return add(p, Poly(c)); }

std::optional<Poly> divide(const Poly& p, int64_t divisor) {
  Poly q;
  for (const auto& [monomial, coefficient] : p.terms()) {
    if (!monomial.empty() && coefficient % divisor != 0) return std::nullopt;
    q.add(monomial, floor_div(coefficient, divisor));
  }
  return q;
}

namespace {

// A sum with a number near the end of 64 bits may wrap, which polynomials do not.
bool may_wrap(const Poly& p) {
  constexpr int64_t kMost = int64_t{1} << 60;
  for (const auto& [monomial, coefficient] : p.terms()) {
    if (monomial.empty() && (coefficient > kMost || coefficient < -kMost)) return true;
  }
  return false;
}

}  // namespace

std::optional<Poly> Poly::of(Expr e) {
  switch (e.op()) {
    case Op::IntConst:
      return Poly(e.integer());
    case Op::Neg: {
      const auto x = of(e[0]);
      return x ? expr::add(Poly(), *x, -1) : std::nullopt;
    }
    case Op::Add:
    case Op::Sub:
    case Op::Mul: {
      const auto x = of(e[0]);
      const auto y = of(e[1]);
      if (!x || !y) return std::nullopt;
      const auto made =
          e.op() == Op::Mul ? multiply(*x, *y) : expr::add(*x, *y, e.op() == Op::Add ? 1 : -1);
      return made && !may_wrap(*made) ? made : std::nullopt;
    }
    default: {
      Poly p;
      p.add({e}, 1);
      return p;
    }
  }
}

std::optional<std::pair<Poly, Poly>> Poly::split(Expr atom) const {
  Poly with;
  Poly without;
  for (const auto& [monomial, coefficient] : terms_) {
    const auto count = std::count(monomial.begin(), monomial.end(), atom);
    const bool is_hidden = std::any_of(monomial.begin(), monomial.end(),
                                       [&](Expr a) { return a != atom && depends_on(a, atom); });
    if (count > 1 || is_hidden) return std::nullopt;
    if (count == 0) {
      without.add(monomial, coefficient);
    } else {
      Monomial rest = monomial;
      rest.erase(std::find(rest.begin(), rest.end(), atom));
      with.add(rest, coefficient);
    }
  }
  return std::pair{with, without};
}

bool counts_along(Expr index, Expr axis) {
  if (index == axis) return true;
  const auto poly = Poly::of(index);
  const auto parts = poly ? poly->split(axis) : std::nullopt;
  return parts && parts->first.constant() == 1 && !parts->second.constant();
}

Expr to_expr(ExprPool& pool, const Poly& poly) {
  Expr sum;
  for (const auto& [monomial, coefficient] : poly.terms()) {
    Expr term;
    for (Expr a : monomial) term = term ? pool.binary(Op::Mul, term, a) : a;
    const bool is_negative = coefficient < 0 && coefficient != INT64_MIN && sum;
    const int64_t shown = is_negative ? -coefficient : coefficient;
    if (!term) {
      term = pool.integer(shown);
    } else if (shown != 1) {
      term = pool.binary(Op::Mul, term, pool.integer(shown));
    }
    sum = !sum ? term : pool.binary(is_negative ? Op::Sub : Op::Add, sum, term);
  }
  return sum ? sum : pool.integer(0);
}

Expr canonical_index(ExprPool& pool, Expr e) {
  if (e.dtype() != DType::I64) return e;
  const auto p = Poly::of(e);
  return p ? to_expr(pool, *p) : e;
}

bool same_index(Expr a, Expr b) {
  if (a == b) return true;
  const auto x = Poly::of(a);
  const auto y = Poly::of(b);
  return x && y && *x == *y;
}

}  // namespace nautilus::expr

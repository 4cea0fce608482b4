// SPDX-License-Identifier: Apache-2.0
// Bounds of polynomials: axes, quotients, remainders, minima and maxima replaced by the ends of
// their ranges. The other half of bounds.h, which holds what is known and what follows from it.
#include <algorithm>

#include "expr/bounds/bounds.h"

namespace nautilus::expr {
namespace {

constexpr int kMaxNesting = 12;  // nested atoms and sign proofs

}  // namespace

std::optional<Facts::Range> Facts::range_of(Expr atom, int depth) const {
  if (depth > kMaxNesting) return std::nullopt;
  if (const auto known = ranges_.of.find(atom); known != ranges_.of.end()) {
    if (const auto it = known->second.find(depth); it != known->second.end()) return it->second;
  }
  const std::optional<Range> range = new_range_of(atom, depth);
  ranges_.of[atom].emplace(depth, range);
  return range;
}

std::optional<Facts::Range> Facts::new_range_of(Expr atom, int depth) const {
  if (const auto it = axis_high_.find(atom); it != axis_high_.end())
    return Range{Poly(0), it->second};
  if (atom.op() == Op::FloorDiv || atom.op() == Op::Mod) {
    const auto x = poly_of(atom[0]);
    const auto c = poly_of(atom[1]);
    if (!x || !c) return std::nullopt;
    const auto positive = plus(*c, -1);
    if (!positive || !is_nonnegative_directly(*positive, depth + 1)) return std::nullopt;
    if (atom.op() == Op::Mod) {
      const auto high = bound(*positive, true, depth + 1);
      if (!high) return std::nullopt;
      return Range{Poly(0), *high};
    }
    const auto low = bound(*x, false, depth + 1);
    const auto high = bound(*x, true, depth + 1);
    if (!low || !high) return std::nullopt;
    const auto number = c->constant();
    if (number) {
      const auto ql = divide(*low, *number);
      const auto qh = divide(*high, *number);
      // x / c is at most x for x >= 0, which serves where the division itself has no polynomial
      // form.
      if (ql && qh) return Range{*ql, *qh};
      if (is_nonnegative_directly(*low, depth + 1))
        return Range{ql ? *ql : Poly(0), qh ? *qh : *high};
      return std::nullopt;
    }
    if (!is_nonnegative_directly(*low, depth + 1)) return std::nullopt;
    const auto most = highest_quotient(*high, *c, depth);
    return Range{Poly(0), most ? *most : *high};
  }
  if (atom.op() == Op::Min || atom.op() == Op::Max) {
    const auto x = poly_of(atom[0]);
    const auto y = poly_of(atom[1]);
    if (!x || !y) return std::nullopt;
    const auto xl = bound(*x, false, depth + 1);
    const auto xh = bound(*x, true, depth + 1);
    const auto yl = bound(*y, false, depth + 1);
    const auto yh = bound(*y, true, depth + 1);
    if (!xl || !xh || !yl || !yh) return std::nullopt;
    auto at_most = [&](const Poly& a, const Poly& b) {
      const auto d = add(b, a, -1);
      return d && is_nonnegative_directly(*d, depth + 1);
    };
    const bool is_min = atom.op() == Op::Min;
    // min: upper bound is either upper bound (choose the smaller), lower bound is the smaller lower
    // bound.
    const bool lows = at_most(*xl, *yl);
    const bool highs = at_most(*xh, *yh);
    if (is_min) {
      if (!lows && !at_most(*yl, *xl)) return std::nullopt;
      return Range{lows ? *xl : *yl, highs ? *xh : *yh};
    }
    if (!highs && !at_most(*yh, *xh)) return std::nullopt;
    return Range{lows ? *yl : *xl, highs ? *yh : *xh};
  }
  return std::nullopt;
}

// high / d for a product of sizes d >= 1: (q * d + r) / d with -d <= r < 0 is q - 1, with
// 0 <= r < d it is q. Empty where nothing of that is known.
std::optional<Poly> Facts::highest_quotient(const Poly& high, const Poly& divisor,
                                            int depth) const {
  if (divisor.terms().size() != 1) return std::nullopt;
  const auto& [factors, factor] = *divisor.terms().begin();
  if (!std::all_of(factors.begin(), factors.end(), [&](Expr a) { return is_size(a); }))
    return std::nullopt;
  Poly q;
  Poly r;
  for (const auto& [monomial, coefficient] : high.terms()) {
    const bool is_multiple =
        coefficient % factor == 0 && std::includes(monomial.begin(), monomial.end(),
                                                   factors.begin(), factors.end(), ByContent());
    if (!is_multiple) {
      r.add(monomial, coefficient);
      continue;
    }
    Monomial rest;
    std::set_difference(monomial.begin(), monomial.end(), factors.begin(), factors.end(),
                        std::back_inserter(rest), ByContent());
    q.add(rest, coefficient / factor);
  }
  auto is_at_least = [&](std::optional<Poly> p) {
    return p && is_nonnegative_directly(*p, depth + 1);
  };
  const auto below = negated(r);
  const auto room = below ? add(divisor, *below) : std::nullopt;
  if (!below || !room) return std::nullopt;
  if (is_at_least(add(r, divisor)) && is_at_least(plus(*below, -1))) return plus(q, -1);
  if (is_at_least(r) && is_at_least(plus(*room, -1))) return q;
  return std::nullopt;
}

// `parts` is factor * (x / c) + rest. With factor = q * c the product is between q * (x - c + 1)
// and q * x, which is sharper than a range of x / c where the bound of x is not a multiple of c.
// Empty where that does not apply.
std::optional<Poly> Facts::bound_division(Expr atom, const std::pair<Poly, Poly>& parts,
                                          bool is_upper, int depth) const {
  if (atom.op() != Op::FloorDiv || atom[1].op() != Op::IntConst || atom[1].integer() <= 0)
    return std::nullopt;
  const int64_t c = atom[1].integer();
  const auto factor = parts.first.constant();
  const auto x = poly_of(atom[0]);
  if (!factor || *factor % c != 0 || !x) return std::nullopt;
  const bool takes_top = (*factor > 0) == is_upper;
  const auto edge = bound(*x, takes_top, depth + 1);
  if (!edge || divide(*edge, c)) return std::nullopt;
  const auto end = plus(*x, takes_top ? 0 : 1 - c);
  const auto joined = end ? add(parts.second, *end, *factor / c) : std::nullopt;
  return joined ? bound(*joined, is_upper, depth + 1) : std::nullopt;
}

// Replaces axes, then other atoms with a range, by the bound that is worst for the wanted side.
// Axes come first: atoms that their extents introduce (`(N - 1) / 2`) may cancel. Atoms without a
// range stay.
std::optional<Poly> Facts::bound(const Poly& p, bool is_upper, int depth) const {
  if (depth > kMaxNesting) return std::nullopt;
  Poly rest = p;
  auto eliminate = [&](Expr atom) {
    const auto parts = rest.split(atom);
    if (!parts) return false;
    if (parts->first.is_zero()) return true;
    if (const auto sharper = bound_division(atom, *parts, is_upper, depth)) {
      rest = *sharper;
      return true;
    }
    const auto range = range_of(atom, depth + 1);
    if (!range) return !axis_high_.contains(atom);
    const auto opposite = negated(parts->first);
    bool takes_high = false;
    if (is_nonnegative_directly(parts->first, depth + 1)) {
      takes_high = is_upper;
    } else if (opposite && is_nonnegative_directly(*opposite, depth + 1)) {
      takes_high = !is_upper;
    } else {
      return false;
    }
    const auto product = multiply(parts->first, takes_high ? range->high : range->low);
    const auto next = product ? add(*product, parts->second) : std::nullopt;
    if (!next) return false;
    rest = *next;
    return true;
  };
  for (Expr atom : p.atoms()) {
    if (axis_high_.contains(atom) && !eliminate(atom)) return std::nullopt;
  }
  for (Expr atom : rest.atoms()) {
    if (!is_size(atom) && !eliminate(atom)) return std::nullopt;
  }
  return rest;
}

// The same for axes alone, where their factors have a known sign.
std::optional<Poly> Facts::bound_axes(const Poly& p, bool is_upper) const {
  Poly rest = p;
  for (Expr atom : p.atoms()) {
    const auto high = axis_high_.find(atom);
    if (high == axis_high_.end()) continue;
    const auto parts = rest.split(atom);
    const auto opposite = parts ? negated(parts->first) : std::nullopt;
    if (!opposite) return std::nullopt;
    const bool is_positive = is_nonnegative_directly(parts->first, 1);
    if (!is_positive && !is_nonnegative_directly(*opposite, 1)) return std::nullopt;
    const auto product =
        is_positive == is_upper ? multiply(parts->first, high->second) : std::optional(Poly(0));
    const auto next = product ? add(*product, parts->second) : std::nullopt;
    if (!next) return std::nullopt;
    rest = *next;
  }
  return rest;
}

bool Facts::is_reached(const Poly& p) const {
  auto is_plain = [](const Poly& q) {
    for (const auto& [monomial, coefficient] : q.terms()) {
      if (monomial.size() > 1 || (monomial.size() == 1 && monomial[0].op() != Op::Var))
        return false;
    }
    return true;
  };
  if (!is_plain(p)) return false;
  for (Expr atom : p.atoms()) {
    const auto it = axis_high_.find(atom);
    if (it != axis_high_.end() && !is_plain(it->second)) return false;
  }
  return true;
}

bool Facts::is_nonnegative_in_sizes(const Poly& p) const {
  // Write each size as low + rest with rest >= 0 and expand.
  Poly expanded = p;
  for (Expr atom : p.atoms()) {
    if (!is_size(atom)) return false;
    const auto it = low_.find(atom);
    if (it == low_.end()) return false;
    const int64_t low = it->second;
    if (low == 0) continue;
    Poly next;
    for (const auto& [monomial, coefficient] : expanded.terms()) {
      // (low + s)^k expands to a product of k such factors.
      Poly term(coefficient);
      Poly shifted(low);
      shifted.add({atom}, 1);
      for (Expr a : monomial) {
        Poly single;
        single.add({a}, 1);
        const auto product = multiply(term, a == atom ? shifted : single);
        if (!product) return false;
        term = *product;
      }
      const auto sum = add(next, term);
      if (!sum) return false;
      next = *sum;
    }
    expanded = next;
  }
  return std::all_of(expanded.terms().begin(), expanded.terms().end(),
                     [](const auto& t) { return t.second >= 0; });
}

bool Facts::is_nonnegative_directly(const Poly& p, int depth) const {
  if (const auto c = p.constant()) return *c >= 0;
  if (depth > kMaxNesting) return false;
  const auto low = bound(p, false, depth + 1);
  return low && is_nonnegative_in_sizes(*low);
}

}  // namespace nautilus::expr

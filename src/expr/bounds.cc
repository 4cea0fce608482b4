// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds.h"

#include <algorithm>

#include "expr/scalar_ops.h"

namespace nautilus::expr {
namespace {

constexpr int kMaxDepth = 12;     // nested atoms and sign proofs
constexpr size_t kMaxFacts = 64;  // known quantities tried in a proof
constexpr int kMaxSplits = 3;     // minima and maxima replaced by their operands

std::optional<Poly> difference(Expr a, Expr b) {
  const auto x = Poly::of(a);
  const auto y = Poly::of(b);
  return x && y ? add(*x, *y, -1) : std::nullopt;
}

std::optional<Poly> negated(const Poly& p) { return add(Poly(), p, -1); }
std::optional<Poly> plus(const Poly& p, int64_t c) { return add(p, Poly(c)); }

// floor(p / divisor) where every non-constant coefficient divides; rounding the constant is then
// exact.
std::optional<Poly> divide(const Poly& p, int64_t divisor) {
  Poly q;
  for (const auto& [monomial, coefficient] : p.terms()) {
    if (!monomial.empty() && coefficient % divisor != 0) return std::nullopt;
    q.add(monomial, floor_div(coefficient, divisor));
  }
  return q;
}

// How often g may usefully be subtracted from p: once, or until a term they share is gone. Empty if
// they share none.
std::vector<int64_t> multiples(const Poly& p, const Poly& g) {
  std::vector<int64_t> out;
  const auto atoms = p.atoms();
  for (Expr a : g.atoms()) {
    if (std::find(atoms.begin(), atoms.end(), a) != atoms.end()) out = {1};
  }
  for (const auto& [monomial, coefficient] : g.terms()) {
    const auto it = p.terms().find(monomial);
    if (monomial.empty() || it == p.terms().end() || (it->second < 0) != (coefficient < 0))
      continue;
    const int64_t k = it->second / coefficient;
    if (it->second % coefficient == 0 && std::find(out.begin(), out.end(), k) == out.end())
      out.push_back(k);
  }
  return out;
}

}  // namespace

void Facts::add_axis(Expr var, Expr extent) {
  const auto e = Poly::of(extent);
  if (!e) return;
  const auto high = plus(*e, -1);
  if (!high) return;
  axis_high_.insert_or_assign(var, *high);
  assume_nonnegative(*high);
  // A product that is at least 1 and has no negative factor has no factor below 1.
  if (e->terms().size() != 1 || e->terms().begin()->second < 0) return;
  const Monomial& factors = e->terms().begin()->first;
  auto is_size = [&](Expr x) {
    const auto it = low_.find(x);
    return it != low_.end() && it->second >= 0;
  };
  const bool has_sizes_only = std::all_of(factors.begin(), factors.end(), is_size);
  if (!has_sizes_only && factors.size() > 1) return;
  for (Expr size : factors) raise_low(size, 1);
}

void Facts::raise_low(Expr var, int64_t low) {
  const auto [it, is_new] = low_.emplace(var, low);
  if (!is_new) it->second = std::max(it->second, low);
}

void Facts::assume_nonnegative(const Poly& p) {
  if (p.constant()) return;
  if (nonnegative_.size() < kMaxFacts) nonnegative_.push_back(p);
  // size - c >= 0 is kept as a lower bound too.
  if (p.terms().size() <= 2) {
    const auto& [monomial, coefficient] = *p.terms().begin();
    if (monomial.size() == 1 && coefficient == 1 && monomial[0].op() == Op::Var &&
        !axis_high_.contains(monomial[0]) && (p.terms().size() == 1 || p.constant_term() != 0) &&
        p.constant_term() != INT64_MIN) {
      raise_low(monomial[0], -p.constant_term());
    }
  }
}

void Facts::assume(Expr c) {
  if (c.op() == Op::And) {
    assume(c[0]);
    assume(c[1]);
    return;
  }
  if (c.op() == Op::Not) return assume_not(c[0]);
  if (!is_comparison(c.op()) || c[0].dtype() != DType::I64) return;
  const auto d = difference(c[0], c[1]);  // c[0] - c[1]
  if (!d) return;
  auto keep = [&](std::optional<Poly> p) {
    if (p) assume_nonnegative(*p);
  };
  const auto opposite = negated(*d);
  switch (c.op()) {
    case Op::Ge:
      return keep(d);
    case Op::Gt:
      return keep(plus(*d, -1));
    case Op::Le:
      return keep(opposite);
    case Op::Lt:
      return opposite ? keep(plus(*opposite, -1)) : void();
    case Op::Eq:
      keep(d);
      return keep(opposite);
    default:
      return;
  }
}

void Facts::assume_not(Expr c) {
  if (c.op() == Op::Or) {
    assume_not(c[0]);
    assume_not(c[1]);
    return;
  }
  if (c.op() == Op::Not) return assume(c[0]);
  if (!is_comparison(c.op()) || c[0].dtype() != DType::I64) return;
  const auto d = difference(c[0], c[1]);
  const auto opposite = d ? negated(*d) : std::nullopt;
  if (!d || !opposite) return;
  auto keep = [&](std::optional<Poly> p) {
    if (p) assume_nonnegative(*p);
  };
  switch (c.op()) {
    case Op::Lt:  // a >= b
      return keep(d);
    case Op::Le:
      return keep(plus(*d, -1));
    case Op::Gt:
      return keep(opposite);
    case Op::Ge:
      return keep(plus(*opposite, -1));
    case Op::Ne:
      keep(d);
      return keep(opposite);
    default:
      return;
  }
}

std::optional<Facts::Range> Facts::range_of(Expr atom, int depth) const {
  if (depth > kMaxDepth) return std::nullopt;
  if (const auto it = axis_high_.find(atom); it != axis_high_.end())
    return Range{Poly(0), it->second};
  if (atom.op() == Op::FloorDiv || atom.op() == Op::Mod) {
    const auto x = Poly::of(atom[0]);
    const auto c = Poly::of(atom[1]);
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
    // Symbolic divisor d >= 1: (q * d + r) / d with -d <= r < 0 is q - 1, with 0 <= r < d it is q.
    const Expr d = atom[1];
    if (d.op() != Op::Var || !is_nonnegative_directly(*low, depth + 1)) return std::nullopt;
    Poly q;
    Poly r;
    for (const auto& [monomial, coefficient] : high->terms()) {
      Monomial rest = monomial;
      const auto at = std::find(rest.begin(), rest.end(), d);
      if (at == rest.end()) {
        r.add(monomial, coefficient);
      } else {
        rest.erase(at);
        q.add(rest, coefficient);
      }
    }
    const auto d_poly = Poly::of(d);
    const auto r_plus_d = add(r, *d_poly);
    const auto below = negated(r);
    if (!r_plus_d || !below) return std::nullopt;
    const auto r_negative = plus(*below, -1);
    if (is_nonnegative_directly(*r_plus_d, depth + 1) && r_negative &&
        is_nonnegative_directly(*r_negative, depth + 1)) {
      const auto one_less = plus(q, -1);
      return one_less ? std::optional(Range{Poly(0), *one_less}) : std::nullopt;
    }
    return Range{Poly(0), *high};
  }
  if (atom.op() == Op::Min || atom.op() == Op::Max) {
    const auto x = Poly::of(atom[0]);
    const auto y = Poly::of(atom[1]);
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

// `parts` is factor * (x / c) + rest. With factor = q * c the product lies between q * (x - c + 1)
// and q * x, which is sharper than a range of x / c where the bound of x is no multiple of c. Empty
// where that does not apply.
std::optional<Poly> Facts::bound_division(Expr atom, const std::pair<Poly, Poly>& parts,
                                          bool is_upper, int depth) const {
  if (atom.op() != Op::FloorDiv || atom[1].op() != Op::IntConst || atom[1].integer() <= 0)
    return std::nullopt;
  const int64_t c = atom[1].integer();
  const auto factor = parts.first.constant();
  const auto x = Poly::of(atom[0]);
  if (!factor || *factor % c != 0 || !x) return std::nullopt;
  const bool takes_top = (*factor > 0) == is_upper;
  const auto edge = bound(*x, takes_top, depth + 1);
  if (!edge || divide(*edge, c)) return std::nullopt;
  const auto end = plus(*x, takes_top ? 0 : 1 - c);
  const auto joined = end ? add(parts.second, *end, *factor / c) : std::nullopt;
  return joined ? bound(*joined, is_upper, depth + 1) : std::nullopt;
}

// Replaces axes, then other atoms with a range, by the bound that is worst for the wanted side.
// Axes go first: what their extents bring in (`(N - 1) / 2`) may cancel. Atoms without a range
// stay; they stand for their own value.
std::optional<Poly> Facts::bound(const Poly& p, bool is_upper, int depth) const {
  if (depth > kMaxDepth) return std::nullopt;
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
    if (atom.op() != Op::Var && !eliminate(atom)) return std::nullopt;
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
    if (atom.op() != Op::Var) return false;
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
  if (depth > kMaxDepth) return false;
  const auto low = bound(p, false, depth + 1);
  return low && is_nonnegative_in_sizes(*low);
}

bool Facts::is_nonnegative(const Poly& p) const { return follows(p, nonnegative_, kMaxSplits); }

// What division says about its own atoms: x - d * (x / d) lies in [0, d - 1], and x % d is at most
// x for x >= 0.
void Facts::add_division_facts(const Poly& p, std::vector<Poly>& known) const {
  for (Expr atom : p.atoms()) {
    if (atom.op() != Op::FloorDiv && atom.op() != Op::Mod) continue;
    const auto x = Poly::of(atom[0]);
    const auto d = Poly::of(atom[1]);
    const auto positive = d ? plus(*d, -1) : std::nullopt;
    if (!x || !positive || !is_nonnegative_directly(*positive, 0)) continue;
    Poly self;
    self.add({atom}, 1);
    const auto whole = atom.op() == Op::Mod ? std::optional(self) : multiply(*d, self);
    const auto remainder = whole ? add(*x, *whole, -1) : std::nullopt;
    if (!remainder) continue;
    if (atom.op() == Op::Mod) {
      if (is_nonnegative_directly(*x, 0)) known.push_back(*remainder);
      continue;
    }
    known.push_back(*remainder);
    if (const auto rest = add(*positive, *remainder, -1)) known.push_back(*rest);
  }
}

// A minimum or maximum is one of its operands, and then the other one is not beyond it.
bool Facts::follows_by_cases(const Poly& p, const std::vector<Poly>& known, int splits) const {
  for (Expr atom : p.atoms()) {
    if (atom.op() != Op::Min && atom.op() != Op::Max) continue;
    const auto parts = p.split(atom);
    const auto x = Poly::of(atom[0]);
    const auto y = Poly::of(atom[1]);
    if (!parts || !x || !y) continue;
    auto holds_if = [&](const Poly& chosen, const Poly& other) {
      const auto product = multiply(parts->first, chosen);
      const auto q = product ? add(*product, parts->second) : std::nullopt;
      const auto order = atom.op() == Op::Min ? add(other, chosen, -1) : add(chosen, other, -1);
      if (!q || !order) return false;
      std::vector<Poly> more = known;
      more.push_back(*order);
      return follows(*q, more, splits - 1);
    };
    return holds_if(*x, *y) && holds_if(*y, *x);
  }
  return false;
}

bool Facts::follows(const Poly& p, const std::vector<Poly>& known, int splits) const {
  if (is_nonnegative_directly(p, 0)) return true;
  if (splits > 0 && follows_by_cases(p, known, splits)) return true;
  // p >= 0 follows from p - g >= 0 for a known g >= 0; two known quantities are tried together.
  std::vector<Poly> candidates = known;
  add_division_facts(p, candidates);
  for (size_t i = 0; i < candidates.size(); ++i) {
    for (const int64_t k : multiples(p, candidates[i])) {
      const auto once = add(p, candidates[i], -k);
      if (!once) continue;
      if (is_nonnegative_directly(*once, 0)) return true;
      for (size_t j = 0; j < candidates.size(); ++j) {
        if (j < i && !multiples(p, candidates[j]).empty()) continue;  // tried the other way round
        for (const int64_t l : multiples(*once, candidates[j])) {
          const auto twice = add(*once, candidates[j], -l);
          if (twice && is_nonnegative_directly(*twice, 0)) return true;
        }
      }
    }
  }
  return false;
}

Truth Facts::prove(Expr c) const {
  switch (c.op()) {
    case Op::BoolConst:
      return c.integer() ? Truth::True : Truth::False;
    case Op::Not: {
      const Truth t = prove(c[0]);
      return t == Truth::Unknown ? t : t == Truth::True ? Truth::False : Truth::True;
    }
    case Op::And:
    case Op::Or: {
      const Truth x = prove(c[0]);
      const Truth y = prove(c[1]);
      const Truth decisive = c.op() == Op::And ? Truth::False : Truth::True;
      if (x == decisive || y == decisive) return decisive;
      return x == y ? x : Truth::Unknown;
    }
    default:
      break;
  }
  if (!is_comparison(c.op()) || c[0].dtype() != DType::I64) return Truth::Unknown;
  const auto d = difference(c[0], c[1]);
  const auto opposite = d ? negated(*d) : std::nullopt;
  if (!d || !opposite) return Truth::Unknown;
  auto holds = [&](const Poly& p, int64_t shift) {
    const auto q = plus(p, shift);
    return q && is_nonnegative(*q);
  };
  auto is_positive = [&] { return holds(*d, -1); };
  auto is_negative = [&] { return holds(*opposite, -1); };
  auto is_at_least_zero = [&] { return holds(*d, 0); };
  auto is_at_most_zero = [&] { return holds(*opposite, 0); };
  auto is_zero = [&] { return d->is_zero() || (is_at_least_zero() && is_at_most_zero()); };
  auto is_nonzero = [&] { return is_positive() || is_negative(); };
  auto decide = [](const auto& is_true, const auto& is_false) {
    return is_true() ? Truth::True : is_false() ? Truth::False : Truth::Unknown;
  };
  switch (c.op()) {
    case Op::Ge:
      return decide(is_at_least_zero, is_negative);
    case Op::Gt:
      return decide(is_positive, is_at_most_zero);
    case Op::Le:
      return decide(is_at_most_zero, is_positive);
    case Op::Lt:
      return decide(is_negative, is_at_least_zero);
    case Op::Eq:
      return decide(is_zero, is_nonzero);
    case Op::Ne:
      return decide(is_nonzero, is_zero);
    default:
      return Truth::Unknown;
  }
}

}  // namespace nautilus::expr

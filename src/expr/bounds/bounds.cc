// SPDX-License-Identifier: Apache-2.0
#include "expr/bounds/bounds.h"

#include <algorithm>

#include "expr/scalar_ops.h"

namespace nautilus::expr {
namespace {

constexpr size_t kMaxFacts = 64;  // known quantities tried in a proof
constexpr int kMaxSplits = 3;     // minima and maxima replaced by their operands

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

// f * (x / d) + c >= 0 says of x itself that it is at least, or at most, a multiple of d.
std::optional<Poly> without_division(const Poly& p) {
  const std::vector<Expr> atoms = p.atoms();
  if (atoms.size() != 1 || atoms[0].op() != Op::FloorDiv || atoms[0][1].op() != Op::IntConst)
    return std::nullopt;
  const auto parts = p.split(atoms[0]);
  const int64_t f = parts ? parts->first.constant().value_or(0) : 0;
  const auto x = Poly::of(atoms[0][0]);
  const int64_t d = atoms[0][1].integer();
  const int64_t c = p.constant_term();
  // So that nothing below overflows.
  constexpr int64_t kMost = int64_t{1} << 30;
  if (!x || f == 0 || f < -kMost || f > kMost) return std::nullopt;
  if (d <= 0 || d > kMost || c < -kMost || c > kMost) return std::nullopt;
  if (f > 0) return plus(*x, floor_div(c, f) * d);  // x / d >= -floor(c / f)
  const auto below = negated(*x);                   // x / d <= floor(c / -f)
  return below ? plus(*below, (floor_div(c, -f) + 1) * d - 1) : std::nullopt;
}

// p >= 0 where d * p > -d, because p is an integer: for a p with quotients by d, because the
// dividends bound the multiples of these quotients.
std::optional<Poly> with_whole_quotients(const Poly& p) {
  int64_t d = 0;
  int quotients = 0;
  bool is_one = true;
  for (Expr atom : p.atoms()) {
    const bool is_choice = atom.op() == Op::Min || atom.op() == Op::Max;
    for (Expr x : is_choice ? std::vector<Expr>{atom[0], atom[1]} : std::vector<Expr>{atom}) {
      if (x.op() != Op::FloorDiv || x[1].op() != Op::IntConst) continue;
      is_one &= d == 0 || x[1].integer() == d;
      d = x[1].integer();
      ++quotients;
    }
  }
  if (!is_one || quotients < 2 || d <= 1) return std::nullopt;
  const auto multiple = multiply(p, Poly(d));
  return multiple ? plus(*multiple, d - 1) : std::nullopt;
}

}  // namespace

void Facts::add_axis(Expr var, Expr extent) {
  const auto e = Poly::of(extent);
  if (!e) return;
  const auto high = plus(*e, -1);
  if (!high) return;
  axis_high_.insert_or_assign(var, *high);
  ranges_.clear();
  assume_nonnegative(*high);
  assume_positive(*e);
}

// A product that is at least 1 and has no negative factor has no factor below 1.
void Facts::assume_positive(const Poly& product) {
  if (product.terms().size() != 1 || product.terms().begin()->second < 0) return;
  const Monomial& factors = product.terms().begin()->first;
  auto is_never_negative = [&](Expr x) {
    const auto it = low_.find(x);
    return it != low_.end() && it->second >= 0;
  };
  const bool has_sizes_only = std::all_of(factors.begin(), factors.end(), is_never_negative);
  if (!has_sizes_only && factors.size() > 1) return;
  for (Expr size : factors) raise_low(size, 1);
}

void Facts::raise_low(Expr var, int64_t low) {
  const auto [it, is_new] = low_.emplace(var, low);
  if (!is_new) it->second = std::max(it->second, low);
  ranges_.clear();
}

void Facts::assume_nonnegative(const Poly& p) {
  if (p.constant()) return;
  ranges_.products.clear();
  if (nonnegative_.size() < kMaxFacts) nonnegative_.push_back(p);
  // f * size - c >= 0 is kept as a lower bound too.
  if (p.terms().size() <= 2) {
    const auto& [monomial, coefficient] = *p.terms().begin();
    if (monomial.size() == 1 && coefficient >= 1 && is_size(monomial[0]) &&
        !axis_high_.contains(monomial[0]) && (p.terms().size() == 1 || p.constant_term() != 0) &&
        p.constant_term() != INT64_MIN) {
      raise_low(monomial[0], -floor_div(p.constant_term(), coefficient));
    }
  }
}

void Facts::assume(Expr c) {
  if (c.op() == Op::And) {
    assume(c[0]);
    assume(c[1]);
    return;
  }
  // `and` with a right side that is read only where the left one holds.
  if (c.op() == Op::Select && c[2].op() == Op::BoolConst && !c[2].is_true()) {
    assume(c[0]);
    assume(c[1]);
    return;
  }
  if (c.op() == Op::Not) return assume_not(c[0]);
  if (!is_comparison(c.op()) || c[0].dtype() != DType::I64) return;
  assume_divisor(c, divisors_);
  if (c.op() == Op::Eq && c[0].op() == Op::Mod && c[1].is_int(0)) {
    multiples_.push_back({c[0][0], c[0][1]});
    ranges_.products.clear();
  }
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
  // `or` with a right side that is read only where the left one does not hold.
  if (c.op() == Op::Select && c[1].is_true()) {
    assume_not(c[0]);
    assume_not(c[2]);
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

bool Facts::is_nonnegative(const Poly& p) const {
  if (follows_from_known(p)) return true;
  for (const auto& equivalent : {without_division(p), with_whole_quotients(p)})
    if (equivalent && follows_from_known(*equivalent)) return true;
  if (const auto quotients = exact_quotients(p); !quotients.empty()) {
    const Facts* facts = with_products(quotients);
    const auto same = facts->with_products(p);
    return same && facts->is_nonnegative(*same);
  }
  return false;
}

// Facts about a size help only polynomials that contain it; extents of axes may introduce it. So
// may quotients of sizes, which cancel against others before they are replaced by a bound.
bool Facts::follows_from_known(const Poly& p) const {
  if (follows(p, nonnegative_, kMaxSplits)) return true;
  const auto without_axes = bound_axes(p, false);
  const bool has_quotients = without_axes && [&] {
    const auto atoms = without_axes->atoms();
    return std::any_of(atoms.begin(), atoms.end(),
                       [](Expr a) { return a.op() == Op::FloorDiv || a.op() == Op::Mod; });
  }();
  if (has_quotients && !(*without_axes == p) && follows(*without_axes, nonnegative_, kMaxSplits))
    return true;
  const auto low = bound(p, false, 0);
  return low && !(*low == p) && follows(*low, nonnegative_, kMaxSplits);
}

// The facts of division about its own atoms: x - d * (x / d) is in [0, d - 1], and is 0 for a
// multiple of d; x % d is at most x for x >= 0; x / (c * d) is (x / c) / d.
void Facts::add_division_facts(const Poly& p, std::vector<Poly>& known) const {
  const auto atoms = p.atoms();
  for (Expr fine : atoms) {
    for (Expr coarse : atoms) {
      if (fine.op() != Op::FloorDiv || coarse.op() != Op::FloorDiv || fine[0] != coarse[0] ||
          fine[1].op() != Op::IntConst || coarse[1].op() != Op::IntConst)
        continue;
      const int64_t c = fine[1].integer();
      const int64_t d = coarse[1].integer();
      if (c < 1 || d <= c || d % c != 0) continue;
      Poly remainder;
      remainder.add({fine}, 1);
      remainder.add({coarse}, -(d / c));
      known.push_back(remainder);
      const auto below = negated(remainder);
      if (const auto rest = below ? plus(*below, d / c - 1) : std::nullopt) known.push_back(*rest);
    }
  }
  for (Expr atom : atoms) {
    if ((atom.op() != Op::FloorDiv && atom.op() != Op::Mod) || is_size(atom)) continue;
    const auto x = poly_of(atom[0]);
    const auto d = poly_of(atom[1]);
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
    const auto number = d->constant();
    const bool is_whole = number && is_multiple(*x, *number, divisors_);
    const auto rest = is_whole ? negated(*remainder) : add(*positive, *remainder, -1);
    if (rest) known.push_back(*rest);
  }
}

// A minimum or maximum is one of its operands, and then the other one is not beyond it.
bool Facts::follows_by_cases(const Poly& p, const std::vector<Poly>& known, int splits) const {
  for (Expr atom : p.atoms()) {
    if (atom.op() != Op::Min && atom.op() != Op::Max) continue;
    const auto parts = p.split(atom);
    const auto x = poly_of(atom[0]);
    const auto y = poly_of(atom[1]);
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

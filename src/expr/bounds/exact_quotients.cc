// SPDX-License-Identifier: Apache-2.0
// Quotients of sizes without remainder: `fact N % G == 0` makes N the product of G and N / G.
//
// A proof about `j / (N / G)` for j < N has to know that N is G times the divisor. The proof is
// tried with such sizes replaced by their products, in all known facts; the quotient is then a size
// like others, at least 0, and at least 1 where N is. A part of bounds.h.
#include <algorithm>
#include <set>

#include "expr/bounds/bounds.h"
#include "expr/walk.h"

namespace nautilus::expr {
namespace {

std::optional<Poly> replace(const Poly& p, const std::unordered_map<Expr, Poly>& products) {
  Poly out;
  for (const auto& [monomial, coefficient] : p.terms()) {
    std::optional<Poly> term = Poly(coefficient);
    for (Expr atom : monomial) {
      Poly single;
      single.add({atom}, 1);
      const auto it = products.find(atom);
      term = multiply(*term, it == products.end() ? single : it->second);
      if (!term) return std::nullopt;
    }
    const auto sum = add(out, *term);
    if (!sum) return std::nullopt;
    out = *sum;
  }
  return out;
}

}  // namespace

std::optional<Poly> Facts::with_products(const Poly& p) const { return replace(p, products_); }

std::optional<Poly> Facts::poly_of(Expr e) const {
  const auto p = Poly::of(e);
  return p && !products_.empty() ? replace(*p, products_) : p;
}

// Whether x / d, for a size x and d >= 1, has no remainder.
bool Facts::is_exact(Expr quotient) const {
  const Expr x = quotient[0];
  const Expr d = quotient[1];
  if (x.op() != Op::Var || axis_high_.contains(x) || x.dtype() != DType::I64) return false;
  const auto low = low_.find(x);
  const auto divisor = Poly::of(d);
  const auto positive = divisor ? plus(*divisor, -1) : std::nullopt;
  if (low == low_.end() || low->second < 0 || !positive) return false;
  if (const auto number = divisor->constant()) {
    const auto size = Poly::of(x);
    return *number >= 1 && size && is_multiple(*size, *number, divisors_);
  }
  const bool is_stated = std::any_of(multiples_.begin(), multiples_.end(), [&](const Multiple& m) {
    return m.number == x && same_index(m.divisor, d);
  });
  return is_stated && !depends_on(d, x) && is_nonnegative_directly(*positive, 0);
}

// Those that occur in a polynomial or in the extents of its axes, in order of content.
std::vector<Expr> Facts::exact_quotients(const Poly& p) const {
  if ((multiples_.empty() && divisors_.empty()) || !products_.empty()) return {};
  std::set<Expr, ByContent> found;
  std::set<Expr, ByContent> axes;
  auto collect = [&](auto& self, const Poly& q) -> void {
    for (Expr atom : q.atoms()) {
      for_each(atom, [&](Expr e) {
        if (e.op() == Op::FloorDiv && is_exact(e)) found.insert(e);
        const auto high = axis_high_.find(e);
        if (high != axis_high_.end() && axes.insert(e).second) self(self, high->second);
      });
    }
  };
  collect(collect, p);
  return {found.begin(), found.end()};
}

// These facts with sizes replaced by products with some of the quotients.
const Facts* Facts::with_products(const std::vector<Expr>& quotients) const {
  auto& known = ranges_.products[quotients];
  if (known) return known.get();
  auto facts = std::make_shared<Facts>(*this);
  for (Expr quotient : quotients) {
    const Expr size = quotient[0];
    const auto divisor = facts->poly_of(quotient[1]);
    Poly self;
    self.add({quotient}, 1);
    const auto product = divisor ? multiply(*divisor, self) : std::nullopt;
    if (!product || facts->products_.contains(size)) continue;
    const auto atoms = product->atoms();
    if (std::find(atoms.begin(), atoms.end(), size) != atoms.end()) continue;
    bool fits = true;
    auto products = facts->products_;
    for (auto& [other, p] : products) {
      const auto replaced = replace(p, {{size, *product}});
      fits &= replaced.has_value();
      if (replaced) p = *replaced;
    }
    if (!fits) continue;
    products.emplace(size, *product);
    facts->products_ = std::move(products);
    facts->quotients_.insert(quotient);
    facts->raise_low(quotient, 0);
  }
  std::vector<Poly> nonnegative;
  nonnegative.swap(facts->nonnegative_);
  for (auto& [axis, high] : facts->axis_high_) {
    const auto same = facts->with_products(high);
    const auto extent = same ? plus(*same, 1) : std::nullopt;
    if (!extent) continue;
    high = *same;
    facts->assume_positive(*extent);
  }
  for (const auto& [size, product] : facts->products_) {
    if (low_.at(size) >= 1) facts->assume_positive(product);
  }
  for (const Poly& p : nonnegative) {
    if (const auto same = facts->with_products(p)) facts->assume_nonnegative(*same);
  }
  known = std::move(facts);
  return known.get();
}

}  // namespace nautilus::expr

// SPDX-License-Identifier: Apache-2.0
// Integer polynomials over atoms: the normal form in which index expressions are compared and
// bounded.
//
//   4*Hk*i + j + 3      has the terms {[Hk, i]: 4, [j]: 1, []: 3}
//
// An atom is anything that is not +, -, * or a constant: a variable, x / c, x % c, a tensor
// element. Two expressions with equal polynomials are equal; most index arithmetic is of first
// degree (affine), products of sizes give higher ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "expr/expr.h"

namespace nautilus::expr {

struct ByContent {
  bool operator()(Expr a, Expr b) const { return compare(a, b) < 0; }
};

// Sorted atoms, repeated for powers; empty for the constant term.
using Monomial = std::vector<Expr>;
struct MonomialLess {
  bool operator()(const Monomial& a, const Monomial& b) const;
};

class Poly {
 public:
  Poly() = default;
  explicit Poly(int64_t constant) { add({}, constant); }

  // Empty when a coefficient leaves 64 bits or the polynomial grows beyond reason.
  static std::optional<Poly> of(Expr e);

  const std::map<Monomial, int64_t, MonomialLess>& terms() const { return terms_; }
  bool is_zero() const { return terms_.empty(); }
  std::optional<int64_t> constant() const;  // if there is no other term
  int64_t constant_term() const;
  std::vector<Expr> atoms() const;

  // Adds coefficient * monomial. False on overflow; do not use the polynomial then.
  bool add(const Monomial& monomial, int64_t coefficient);
  friend std::optional<Poly> add(const Poly& a, const Poly& b, int64_t factor);
  friend std::optional<Poly> multiply(const Poly& a, const Poly& b);

  // This polynomial as  atom * first + second, both free of the atom; empty if the atom occurs
  // squared, or inside another atom (`x / 4` is not a polynomial of x).
  std::optional<std::pair<Poly, Poly>> split(Expr atom) const;

  friend bool operator==(const Poly& a, const Poly& b) { return a.terms_ == b.terms_; }

 private:
  std::map<Monomial, int64_t, MonomialLess> terms_;
};

// a + factor * b, and a * b; empty on overflow.
std::optional<Poly> add(const Poly& a, const Poly& b, int64_t factor = 1);
std::optional<Poly> multiply(const Poly& a, const Poly& b);

// a - b as polynomials.
std::optional<Poly> difference(Expr a, Expr b);
std::optional<Poly> negated(const Poly& p);
std::optional<Poly> plus(const Poly& p, int64_t c);
// floor(p / divisor) where every non-constant coefficient divides; rounding the constant is then
// exact.
std::optional<Poly> divide(const Poly& p, int64_t divisor);

// Canonical expression of a polynomial: terms in order of content, constant last.
Expr to_expr(ExprPool& pool, const Poly& poly);
// The same expression in canonical form where it is a small polynomial; unchanged otherwise.
Expr canonical_index(ExprPool& pool, Expr e);
// Whether the index is the axis, or the axis behind whole rows of another one (`i*W + j`):
// neighbours along the axis are neighbours in memory, and as often as not a vector begins at each
// of them.
bool counts_along(Expr index, Expr axis);
// True if both are equal as polynomials.
bool same_index(Expr a, Expr b);

}  // namespace nautilus::expr

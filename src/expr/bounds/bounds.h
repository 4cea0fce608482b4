// SPDX-License-Identifier: Apache-2.0
// What is known about the variables of an expression, and proofs from it.
//
// It knows sizes (>= 0), axes (0 <= i < extent, and then the extent is at least 1), declared facts
// and the conditions of enclosing guards. A proof of p >= 0 replaces axes and division atoms by
// their least favourable bound, then shows that the remaining polynomial in sizes has no negative
// coefficient once every size is written as its lower bound plus something. It may first subtract
// known non-negative quantities, among them the bounds of a remainder, and examines both operands
// of a minimum or maximum. Where a fact says that G divides N, a proof about N / G may replace N by
// the product of G and a new size. Sound, incomplete, fast. Only for i64: other integers wrap.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "expr/bounds/affine.h"
#include "expr/bounds/divisors.h"

namespace nautilus::expr {

enum class Truth : uint8_t { False, True, Unknown };

class Facts {
 public:
  // A size: a variable that is never negative. Other variables (integer scalars) have no bounds of
  // their own.
  void add_size(Expr var) { raise_low(var, 0); }
  // An axis in scope. Its extent must not depend on other axes.
  void add_axis(Expr var, Expr extent);
  // A condition that holds. Conjunctions are split; what is not an integer comparison is ignored.
  void assume(Expr condition);
  // The negation of a condition holds.
  void assume_not(Expr condition);

  Truth prove(Expr condition) const;
  bool is_nonnegative(const Poly& p) const;

  // Least and greatest value as polynomials in sizes, where they exist.
  std::optional<Poly> lower(const Poly& p) const { return bound(p, false, 0); }
  std::optional<Poly> upper(const Poly& p) const { return bound(p, true, 0); }

  // True if some point has the value of these bounds: axes reach their extreme values
  // independently, and their extents are affine.
  bool is_reached(const Poly& p) const;

 private:
  struct Range {
    Poly low;
    Poly high;
  };
  struct Multiple {
    Expr number;
    Expr divisor;
  };
  bool follows_from_known(const Poly& p) const;
  bool follows(const Poly& p, const std::vector<Poly>& known, int splits) const;
  bool follows_by_cases(const Poly& p, const std::vector<Poly>& known, int splits) const;
  void add_division_facts(const Poly& p, std::vector<Poly>& known) const;
  bool is_nonnegative_directly(const Poly& p, int depth) const;
  bool is_nonnegative_in_sizes(const Poly& p) const;
  std::optional<Poly> bound(const Poly& p, bool is_upper, int depth) const;
  std::optional<Poly> bound_axes(const Poly& p, bool is_upper) const;
  std::optional<Poly> bound_division(Expr atom, const std::pair<Poly, Poly>& parts, bool is_upper,
                                     int depth) const;
  std::optional<Range> range_of(Expr atom, int depth) const;
  std::optional<Range> new_range_of(Expr atom, int depth) const;
  std::optional<Poly> highest_quotient(const Poly& high, const Poly& divisor, int depth) const;
  void assume_nonnegative(const Poly& p);
  void assume_positive(const Poly& product);
  void raise_low(Expr var, int64_t low);
  bool is_size(Expr atom) const { return atom.op() == Op::Var || quotients_.contains(atom); }

  // Sizes as products with their quotients (exact_quotients.cc).
  std::vector<Expr> exact_quotients(const Poly& p) const;
  bool is_exact(Expr quotient) const;
  const Facts* with_products(const std::vector<Expr>& quotients) const;
  std::optional<Poly> poly_of(Expr e) const;
  std::optional<Poly> with_products(const Poly& p) const;

  std::unordered_map<Expr, Poly> axis_high_;  // extent - 1
  std::unordered_map<Expr, int64_t> low_;     // known lower bounds of sizes and scalars
  std::vector<Poly> nonnegative_;
  Divisors divisors_;  // of sizes
  std::vector<Multiple> multiples_;
  // N as G * (N / G), and the quotients, which are sizes. Only in facts that with_products() makes.
  std::unordered_map<Expr, Poly> products_;
  std::unordered_set<Expr> quotients_;

  struct ByContents {
    bool operator()(const std::vector<Expr>& a, const std::vector<Expr>& b) const {
      return MonomialLess()(a, b);
    }
  };
  // Ranges that range_of has found, by atom and depth, and facts with products, by the quotients in
  // them. A proof asks for the same ones many times; new bounds make them obsolete. A copy of facts
  // starts empty, because it is about to get more facts.
  struct KnownRanges {
    KnownRanges() = default;
    KnownRanges(const KnownRanges&) {}
    KnownRanges& operator=(const KnownRanges&) {
      clear();
      return *this;
    }
    void clear() {
      of.clear();
      products.clear();
    }
    std::unordered_map<Expr, std::map<int, std::optional<Range>>> of;
    std::map<std::vector<Expr>, std::shared_ptr<const Facts>, ByContents> products;
  };
  mutable KnownRanges ranges_;
};

}  // namespace nautilus::expr

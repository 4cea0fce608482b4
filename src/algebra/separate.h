// SPDX-License-Identifier: Apache-2.0
// The separable normal form: which factors of a reduction term depend on running values.
//
//   g = exp2(T[i, j]*c - finite(m[i])*c) * V[j, e]      running: m[i], streamed axis: j
// separates into one term
//   running part   exp2(-finite(m[i])*c)
//   streamed part  exp2(T[i, j]*c) * V[j, e]
//
// An expression is a sum of products; each product is split into factors that depend on the running
// values (powers of atoms, and exponents) and the rest. One distinct running part means rank 1: a
// sum of such terms is repaired by one factor when the running values move. Several running parts
// mean a higher, finite rank. Anything else is refused, and the refusal names the node that
// prevents it. Exactness class: exact over the reals.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "algebra/outcome.h"
#include "algebra/sign.h"
#include "expr/walk.h"

namespace nautilus::algebra {

using expr::Expr;
using expr::ExprPool;

// atom^exponent; the atom depends on running values and on nothing streamed.
struct Power {
  Expr atom;
  double exponent;
};

// A factor b^(sign * core * factor), b = e or 2. The core depends on running values, the factor
// (null: 1) on neither kind.
struct ExpTerm {
  Expr core;
  Expr factor;
  int sign;
  bool is_base2;
  friend bool operator==(const ExpTerm&, const ExpTerm&) = default;
};

struct RunningPart {
  std::vector<Power> powers;
  std::vector<ExpTerm> exponents;
  bool is_one() const { return powers.empty() && exponents.empty(); }
};
bool operator==(const RunningPart& a, const RunningPart& b);

struct SeparatedTerm {
  RunningPart running;
  Expr streamed;
};

struct Separation {
  std::vector<SeparatedTerm> terms;  // distinct running parts; empty for the constant 0
};

class Separator {
 public:
  // `running`: the reads with moving values. `streamed`: the axes of the loop; an expression that
  // contains neither is fixed.
  Separator(ExprPool& pool, std::unordered_set<Expr> running, std::unordered_set<Expr> streamed,
            const Signs& signs)
      : pool_(pool), running_(std::move(running)), streamed_(std::move(streamed)), signs_(signs) {}

  Outcome<Separation> separate(Expr g);

  bool is_running(Expr e) { return (class_of(e) & kRunning) != 0; }
  bool is_streamed(Expr e) { return (class_of(e) & kStreamed) != 0; }

 private:
  using Terms = std::vector<SeparatedTerm>;
  enum : uint8_t { kRunning = 1, kStreamed = 2 };
  uint8_t class_of(Expr e);
  Outcome<Terms> terms_of(Expr e);
  Outcome<Terms> new_terms_of(Expr e);
  Outcome<Terms> product_of(Expr e);
  Outcome<Terms> quotient(Expr e);
  Outcome<Terms> sum(Expr e);
  Outcome<Terms> cast(Expr e);
  Outcome<Terms> exponential(Expr e);
  Outcome<Terms> root(Expr e);
  Outcome<Terms> power(Expr e);
  Outcome<Terms> select(Expr e);
  // An exponent, sorted into its parts.
  struct Exponent {
    bool is_base2 = false;
    RunningPart running = {};
    Expr streamed = {};
    Rejection why = {};  // it has no such parts
  };
  // Adds `sign * e * factor` to the parts; false if that has none.
  bool flatten(Expr e, int sign, Expr factor, Exponent& out);
  Terms atom(Expr e);
  Terms merged(Terms terms);
  Terms product(const Terms& a, const Terms& b);
  Outcome<Terms> inverse(Terms terms, Expr e);
  Expr one(expr::DType dtype) { return pool_.constant(1, dtype); }
  Expr times(Expr a, Expr b);

  ExprPool& pool_;
  std::unordered_set<Expr> running_;
  std::unordered_set<Expr> streamed_;
  const Signs& signs_;
  std::unordered_map<Expr, uint8_t> classes_;
  // Expressions share nodes; each node is separated once.
  std::unordered_map<Expr, Outcome<Terms>> terms_;
  int flattened_ = 0;
};

}  // namespace nautilus::algebra

// SPDX-License-Identifier: Apache-2.0
// Running references of loops: carried maxima or minima that other carried values are relative to.
// Which values are relative to them is derived by following a change of the reference through the
// loop (vrtile/weights.h).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "vrtile/finite.h"
#include "vrtile/ops.h"
#include "vrtile/weights.h"

namespace nautilus::vrtile {

struct Reference {
  Carry carry;                        // the running reference
  Set next;                           // max or min of it and `local`
  ir::Expr local;                     // the value it follows, as the set reads it
  ir::Expr scale = {};                // in powers of two per unit
  bool has_wide_accumulator = false;  // a value with more axes than the reference is relative to it
};

class References {
 public:
  References(const ir::Program& program, expr::ExprPool& pool)
      : program_(program), pool_(pool), finite_(program) {}

  // To be called for the ops around the loops, in their order.
  void add(const ir::Op& op);

  // A carry with the larger or smaller of itself and another tile as its next value.
  std::optional<Reference> reference(const For& loop, const Carry& c) const;

  // Whether the loop and the ops after it compute the same with every sequence of references, and
  // something is relative to this one. Finds the scale; if not, says why.
  bool has_any_gauge(const For& loop, Reference& r, const ir::Block& after, std::string* why) const;

  // exp2 of an expression that is 0 when the reference stays: only then 1 may replace it.
  bool is_factor(const Set& s, const Reference& r) const;

 private:
  bool starts_well(const Reference& r, const std::vector<Carry>& carries,
                   const std::unordered_map<ir::Name, TileWeight>& weights) const;
  bool find_scale(const For& loop, Reference& r, const Weights& weights, std::string* why) const;

  const ir::Program& program_;
  expr::ExprPool& pool_;
  FiniteTiles finite_;
  std::unordered_map<ir::Name, ir::Op> definitions_;
};

}  // namespace nautilus::vrtile

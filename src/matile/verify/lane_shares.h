// SPDX-License-Identifier: Apache-2.0
// What threads hold of a value before a reduction is complete, and what element-wise expressions
// make of it:
//
//     shares of   stay shares under                                    may meet
//     a sum       x * w, x / w, -x, where(c, x, 0)                     shares of a sum, same lanes
//     a maximum   x + w, x - w, x * positive, exp, max and min with w  the same; whole values
//     a minimum   the same                                             the same; whole values
//
// (w: whole, the same in all lanes of an element; -x and w - x make a minimum of a maximum).
//
// In tiles that are `own` to their threads shares may meet anything: what comes of it are numbers
// of the threads, which say nothing about each other until they are combined.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "diag/source.h"
#include "expr/expr.h"
#include "matile/monotone.h"

namespace nautilus::matile {

// Threads that differ in these bits hold different shares: five of the lane, two of the warp, one
// for the group and one for the CTA of a cluster, whatever their number.
using ThreadBits = unsigned;
inline constexpr ThreadBits kLaneBits = 31;
inline constexpr ThreadBits kWarpBits = 3 << 5;
inline constexpr ThreadBits kGroupBit = 1 << 7;
inline constexpr ThreadBits kCtaBit = 1 << 8;

struct Held {
  enum class Kind : uint8_t { Nothing, Number, Whole, Shares, Own, Mixed };
  Kind kind = Kind::Nothing;
  double number = 0;  // of Number: the same in all elements
  expr::Reducer reducer = expr::Reducer::Sum;
  expr::Reducer folded_by =
      expr::Reducer::Sum;  // the tile; its negative is of the opposite reducer
  ThreadBits bits = 0;     // of Shares and Own
  std::string tile = {};   // that was read, or folded into
  diag::Span since = {};   // where the shares come from

  bool has_shares() const {
    return kind == Kind::Shares || kind == Kind::Own || kind == Kind::Mixed;
  }
  bool is_number(double x) const { return kind == Kind::Number && number == x; }
  bool is_sum() const { return kind == Kind::Shares && reducer == expr::Reducer::Sum; }
  bool is_extreme() const { return kind == Kind::Shares && reducer != expr::Reducer::Sum; }
  // Compares without the place and the name of the value.
  bool is_like(const Held& o) const {
    return kind == o.kind && (kind != Kind::Number || number == o.number) &&
           (kind != Kind::Shares || (reducer == o.reducer && bits == o.bits)) &&
           (kind != Kind::Own || bits == o.bits);
  }
};
inline Held whole() { return {.kind = Held::Kind::Whole}; }

// What a tile holds that holds either of the two. A whole value is also shares of a maximum, and 0
// shares of a sum. Threads may have any numbers of their own.
Held either(const Held& a, const Held& b);

// By tile; others hold whole values.
using HeldByTiles = std::map<std::string, Held, std::less<>>;
bool is_like(const HeldByTiles& a, const HeldByTiles& b);
HeldByTiles either(HeldByTiles a, const HeldByTiles& b);

class ShareRules {
 public:
  // Calls `refuse` with what is not whole and how it `is used`.
  using Refuse = std::function<void(const Held& held, std::string_view is_used)>;

  ShareRules(const HeldByTiles& tiles, const PositiveScalars& positive, Refuse refuse)
      : tiles_(tiles), positive_(positive), refuse_(std::move(refuse)) {}

  // What the value of the expression is; `known` has that of some parts of it.
  Held value(expr::Expr e, std::unordered_map<expr::Expr, Held> known = {});

 private:
  Held value_of(expr::Expr e);
  Held sum(const Held& a, const Held& b);
  Held scaled(const Held& a, const Held& factor, expr::Expr e);
  Held extreme(expr::Expr e, const Held& a, const Held& b);
  Held refused(const Held& a, const Held& b, std::string_view is_used);
  Held refused_in(expr::Expr e, const Held& a, const Held& b);
  void need_whole(const Held& held, std::string_view is_used);
  Held operand(expr::Expr e);

  const HeldByTiles& tiles_;
  const PositiveScalars& positive_;
  Refuse refuse_;
  std::unordered_map<expr::Expr, Held> known_;
};

}  // namespace nautilus::matile

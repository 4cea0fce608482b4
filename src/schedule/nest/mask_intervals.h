// SPDX-License-Identifier: Apache-2.0
// Whether a condition may or must hold on a whole tile: interval arithmetic over the rows of a tile
// and the positions of a step.
//
//   doc[b, i] == doc[b, j]    may hold somewhere if    least(doc, rows) <= most(doc, step) and
//                                                      least(doc, step) <= most(doc, rows)
//                             holds everywhere if      all four are the same
//
// Values that depend on one of the two axes are summarised by their extremes along it, however they
// are computed; values that depend on both are followed through sums, differences, products with
// constants, minima, maxima and absolute values. Conditions that read memory at both axes are
// evaluated at every point of the tile, before the kernel, if other axes share them: all tiles
// along those axes use the result. A value that cannot be followed may be anything.
#pragma once

#include <functional>
#include <optional>

#include "expr/bounds/bounds.h"
#include "schedule/fusion/tiling.h"

namespace nautilus::schedule {

// Conditions in the tiles' numbers. Null: nothing is known.
struct TileTruth {
  Expr may;   // false only if the condition is false at every point
  Expr must;  // true only if it is true at every point
};

class MaskIntervals {
 public:
  // The least or greatest value over the tile of an axis, as an expression in the tile's number; of
  // the rows and the positions of a step together if the axis is null. Null: unknown.
  using Extreme = std::function<Expr(Expr value, Expr axis, bool is_greatest)>;

  MaskIntervals(const Fusion& fusion, const Tiling& tiling, const ir::Program& program,
                expr::ExprPool& pool, Extreme extreme);

  TileTruth truth(Expr condition);

  // Whether a value depends on axes outside the tile alone, and can be read before it.
  bool is_uniform(Expr e) const;

 private:
  // Integers are taken as i64, floats as they are. `bits`: no value has more.
  struct Interval {
    Expr least;
    Expr most;
    int bits = 0;
  };
  bool is_readable(Expr e) const;
  bool is_plain_index(Expr e) const;
  std::optional<Interval> interval(Expr e);
  std::optional<Interval> summarised(Expr e);
  std::optional<Interval> computed(Expr e);
  Interval wrapped(Interval x, expr::DType dtype);
  TileTruth comparison(Expr c);
  TileTruth flag(Expr c);
  bool is_shared(Expr c) const;
  TileTruth less(const Interval& x, const Interval& y, bool or_equal);
  static TileTruth without_must(TileTruth t) { return {t.may, {}}; }

  Expr both(Expr a, Expr b);
  Expr either(Expr a, Expr b);
  Expr negated(Expr a);
  Expr binary(expr::Op op, Expr a, Expr b) { return pool_.binary(op, a, b); }

  const Fusion& fusion_;
  const Tiling& tiling_;
  expr::ExprPool& pool_;
  Extreme extreme_;
  expr::Facts facts_;
  std::unordered_map<expr::Name, ir::TensorType> tensors_;
};

}  // namespace nautilus::schedule

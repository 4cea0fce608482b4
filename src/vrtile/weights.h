// SPDX-License-Identifier: Apache-2.0
// How values change when a running reference changes.
//
// A loop that follows a reference m (a running maximum, say) keeps accumulators relative to it: l =
// sum exp2((t - m) * c). Had m been m + d, l would be l * exp2(-c * d), and l / l or m * c +
// log2(l) would not change at all. The weight of a value says which of these happens, for a change
// `old` of the reference at the beginning of an iteration and `now` of the new one; values of a row
// change with the reference of that row.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/op.h"
#include "vrtile/coefficient.h"

namespace nautilus::vrtile {

struct Weight {
  enum class Kind : uint8_t {
    Zero,     // 0, or nothing known yet: agrees with every weight
    Plain,    // does not change
    Scaled,   // is multiplied by exp2(old * d_old + now * d_now)
    Shifted,  // old * d_old + now * d_now is added
    Bad       // anything else
  };
  Kind kind = Kind::Plain;
  Coefficient old = {};
  Coefficient now = {};
  ir::Expr row = {};  // index of the reference; in a tile's weight its position, see TileWeight

  bool is_weighted() const { return kind == Kind::Scaled || kind == Kind::Shifted; }
};

struct TileWeight {
  Weight weight;
  size_t dim = 0;  // the dimension of the tile that is the reference's index
};

class Weights {
 public:
  explicit Weights(expr::ExprPool& pool) : pool_(pool) {}

  void clear() { tiles_.clear(); }
  void set(ir::Name tile, TileWeight weight) { tiles_.insert_or_assign(tile, weight); }
  TileWeight of(ir::Name tile) const;
  // Follows an op that defines a tile, other than a carry.
  void add(const ir::Op& op);
  Weight of(ir::Expr e) const;

 private:
  Weight operation(ir::Expr e) const;
  Weight product(ir::Expr e) const;
  Weight quotient(ir::Expr e) const;
  Weight sum(ir::Expr e) const;
  Weight choice(ir::Expr e) const;
  Weight extreme(ir::Expr e) const;
  Weight comparison(ir::Expr e) const;
  Weight function(ir::Expr e) const;
  Weight reduction(ir::Expr e) const;
  TileWeight placed(const Weight& w, const ir::Axes& axes) const;

  expr::ExprPool& pool_;
  std::unordered_map<ir::Name, TileWeight> tiles_;
};

}  // namespace nautilus::vrtile

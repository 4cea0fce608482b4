// SPDX-License-Identifier: Apache-2.0
// How strongly the values of a role grow where a reference lags behind: a weight w = exp2(s - m) by
// 2^d where m is d too small, its square by 2^(2 d), w / sum(w) not at all (vrtile/weights.h). From
// that follows how large weights may become before something made from them leaves its dtype.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "matile/ops.h"
#include "vrtile/weights.h"

namespace nautilus::matile {

class ReferencePowers {
 public:
  // The branches of votes about the reference repair what it moves, and are not looked at.
  ReferencePowers(const Role& role, ir::Name reference, expr::ExprPool& pool);

  // Of a value that changes with the reference in a way that is not known; empty if there is none.
  const std::string& why() const { return why_; }
  // True if the tile grows or shrinks with the reference.
  bool is_weight(ir::Name tile) const { return tiles_.contains(std::string(tile.str())); }
  // What elements of the tile may sum up to without anything leaving its range, where `lag` is by
  // how many powers of two the reference is behind; nothing if the tile does not grow with the lag,
  // or something changes in another way.
  std::optional<double> range(ir::Name tile, ir::Expr lag) const;

 private:
  struct Grown {
    vrtile::Coefficient power;
    ir::DType dtype = {};
  };
  void add(const ir::Block& block);
  void add_value(ir::Name target, const ir::Axes& axes, ir::Expr value);
  bool is_branch(const ir::Op& op) const;

  const ir::Name reference_;
  vrtile::Weights weights_;
  std::vector<ir::Name> votes_;
  std::map<std::string, ir::DType> dtypes_;
  std::map<std::string, Grown> tiles_;
  std::vector<Grown> grown_;
  std::string why_;
};

}  // namespace nautilus::matile

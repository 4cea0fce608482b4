// SPDX-License-Identifier: Apache-2.0
// How strongly the values of a role grow where a reference lags: a weight w = exp2(s - m) by 2^d
// where m is d too small, its square by 2^(2 d), w / sum(w) not at all (vrtile/weights.h). This
// gives the size that weights may reach before a value computed from them leaves the range of its
// dtype.
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
  // The branches of votes about the reference only repair moved values, and are skipped.
  ReferencePowers(const Role& role, ir::Name reference, expr::ExprPool& pool);

  // About a value that changes with the reference in an unknown way; empty if there is none.
  const std::string& why() const { return why_; }
  // True if the tile grows or shrinks with the reference.
  bool is_weight(ir::Name tile) const { return tiles_.contains(std::string(tile.str())); }
  // The largest sum of the tile's elements for which no value leaves its range, where `lag` is the
  // number of powers of two by which the reference lags. Nothing if the tile does not grow with the
  // lag, or a value changes in another way.
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

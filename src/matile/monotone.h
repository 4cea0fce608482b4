// SPDX-License-Identifier: Apache-2.0
// Whether an expression rises or falls with a register tile. Values that lanes hold shares of can
// be voted on before they are combined if the condition only asks whether they are large (or
// small).
#pragma once

#include <optional>
#include <set>
#include <string>

#include "algebra/sign.h"
#include "ir/op.h"

namespace nautilus::matile {

// Scalars that are positive by the facts and the `let`s of a plan, and products, quotients and sums
// of these.
class PositiveScalars {
 public:
  explicit PositiveScalars(const ir::Program& program);
  bool contains(expr::Expr e) const;

 private:
  algebra::Signs signs_;  // by facts
  std::set<std::string, std::less<>> lets_;
};

// +1 if e grows with the tile, -1 if it falls, 0 if it does not depend on it; nothing if unknown.
std::optional<int> direction(expr::Expr e, ir::Name tile, const PositiveScalars& positive);

// Whether the condition, once true, stays true for all larger values of the tile (sign 1) or for
// all smaller ones (sign -1). True of a condition that does not read the tile.
bool holds_beyond(expr::Expr condition, ir::Name tile, int sign, const PositiveScalars& positive);

// Whether one question of the condition depends on both tiles: `a + b > 1`, not `a > 1 or b > 1`.
// The largest shares of two tiles may be in different lanes.
bool asks_together(expr::Expr condition, ir::Name a, ir::Name b);

}  // namespace nautilus::matile

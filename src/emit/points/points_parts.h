// SPDX-License-Identifier: Apache-2.0
// Loops over the parts of an axis: few turns, all of whose loads are wanted at once.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// The variable of such a loop, which has a name already, and the texts of its ends.
struct PartsLoop {
  ir::Name var;
  std::string from;
  std::string to;
};

// Whether a loop up to there is over the parts of an axis, whose number the plan says.
bool is_over_parts(const PointsScope& scope, expr::Expr to);
// The loads of some turns are under way together, the last turns too, which a loop unrolled by the
// compiler would take one by one.
void write_parts(PointsScope& scope, const PartsLoop& loop, const ir::Block& body);

// Whether an index is made of what a loop's body neither defines nor changes.
bool is_known_before(const PointsScope& scope, expr::Expr index, const NameSet& defined);

}  // namespace nautilus::emit

// SPDX-License-Identifier: Apache-2.0
// Loops of a kernel of scalar code, as their turns are written: one by one, or several of them so
// that their loads are under way together.
#pragma once

#include "emit/points/points_scope.h"

namespace nautilus::emit {

// The ends and the variable of a loop, as text.
struct LoopText {
  std::string head() const;

  std::string from;
  std::string to;
  std::string var;
  bool is_up = true;
};

// The ends are texts before the variable has its name, which may hide another; the caller has
// OwnNames around the loop.
LoopText begin_loop(PointsScope& scope, const matile::Loop& l);

void write_loop(PointsScope& scope, const matile::Loop& l);

}  // namespace nautilus::emit

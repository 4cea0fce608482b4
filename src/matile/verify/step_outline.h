// SPDX-License-Identifier: Apache-2.0
// The ops of a role that decide about its steps: rings, turns, and the loops, branches and numbers
// around them. The rest of a role's text does not affect steps, and would be walked again for every
// sample and tile.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "matile/ops.h"

namespace nautilus::matile {

class StepOutline {
 public:
  explicit StepOutline(const ir::Block& ops);

  const ir::Block& body() const { return body_; }
  // Whether steps may depend on the variable.
  bool uses(ir::Name name) const { return names_.contains(name); }

 private:
  void add(ir::Expr e);
  ir::Block reduced(const ir::Block& ops);
  ir::Block without_idle(const ir::Block& ops) const;

  std::vector<std::pair<ir::Name, ir::Expr>> lets_;  // not needed so far
  std::unordered_set<ir::Name> names_;               // that steps depend on
  ir::Block body_;
};

}  // namespace nautilus::matile

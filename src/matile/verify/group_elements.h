// SPDX-License-Identifier: Apache-2.0
// Values that differ between the groups of a role: scalars and tile elements that depend on the
// group's number, `X[t, 4096 * w + j]`. Decided by names, independent of the order of the ops: a
// tile that once holds elements of its own group counts as such everywhere.
#pragma once

#include <set>
#include <string>

#include "matile/ops.h"

namespace nautilus::matile {

class GroupElements {
 public:
  explicit GroupElements(const Role& role);

  // Whether the role has a `groups`.
  bool meet() const { return meet_; }
  bool differ(ir::Name name) const { return names_.contains(name.str()); }
  // Whether the value may differ from group to group; shares that are not combined yet do not
  // count.
  bool differ_in(ir::Expr e) const;

 private:
  bool collect(const ir::Block& ops);
  bool add(ir::Name name) { return names_.emplace(name.str()).second; }

  bool meet_ = false;
  std::set<std::string, std::less<>> names_;
};

}  // namespace nautilus::matile

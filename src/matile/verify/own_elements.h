// SPDX-License-Identifier: Apache-2.0
// Values that differ between the groups of a role, or between the CTAs of a cluster: scalars and
// tile elements that depend on the group's number or the CTA's rank, `X[t, 4096 * w + j]`. Decided
// by names, independent of the order of the ops: a tile that once holds elements of its own counts
// as such everywhere.
#pragma once

#include <set>
#include <string>

#include "matile/ops.h"

namespace nautilus::matile {

class OwnElements {
 public:
  static OwnElements of_groups(const Role& role);
  // `rank`: the name by which the kernel's CTAs are told apart; empty if they are not.
  static OwnElements of_ctas(const Role& role, ir::Name rank);

  // Whether the role combines them.
  bool meet() const { return meet_; }
  bool differ(ir::Name name) const { return names_.contains(name.str()); }
  // Whether the value may differ from one to the other; shares that are not combined yet do not
  // count.
  bool differ_in(ir::Expr e) const;

 private:
  OwnElements(const Role& role, ir::Name number, bool meet);
  bool collect(const ir::Block& ops);
  bool add(ir::Name name) { return names_.emplace(name.str()).second; }

  bool meet_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace nautilus::matile

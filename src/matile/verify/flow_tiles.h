// SPDX-License-Identifier: Apache-2.0
// Register tiles that a role reads and writes: tiles that are read have a value, and no product in
// flight uses the registers (R4, R5).
#pragma once

#include "matile/verify/flow_state.h"

namespace nautilus::matile {

class TileFlow {
 public:
  explicit TileFlow(FlowContext& context) : c_(context) {}

  void read(ir::Name tile);
  // All tiles of an expression.
  void read(ir::Expr e);
  void write(ir::Name tile);
  void update(ir::Name tile) {
    read(tile);
    write(tile);
  }

  void enter_loop() { loops_.emplace_back(); }
  // At the end of a loop's body.
  void leave_loop();

  // A value set in one branch and read in another of the same condition is not followed. Returns
  // the previous setting.
  bool set_in_branch(bool is_in_branch) { return std::exchange(in_branch_, is_in_branch); }

 private:
  FlowContext& c_;
  std::vector<std::set<std::string>> loops_;  // tiles read in each enclosing loop
  bool in_branch_ = false;
};

}  // namespace nautilus::matile

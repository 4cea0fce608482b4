// SPDX-License-Identifier: Apache-2.0
// Slots of rings that a role holds: when they are got, read and released (R4, R10, R12).
#pragma once

#include <string_view>

#include "matile/verify/flow_state.h"

namespace nautilus::matile {

class SlotFlow {
 public:
  explicit SlotFlow(FlowContext& context) : c_(context) {}

  int held(ir::Name ring) const;

  void get(ir::Name ring);
  // A slot is released only when no product reads it any more.
  void release(ir::Name ring);
  // A step of the ring without its slots: a skip or a jump, as `what` says.
  void pass(ir::Name ring, std::string_view what);
  // An operand, or a slot tile that is taken, must be in a slot that is held; `use` says which of
  // the two.
  void check_held(ir::Name slot_tile, ir::Name ring, std::string_view use);
  // A result that is staged on a ring needs a held slot that nothing reads any more.
  void stage(const Store& op);

 private:
  FlowContext& c_;
};

}  // namespace nautilus::matile

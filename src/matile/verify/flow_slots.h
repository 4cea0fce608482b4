// SPDX-License-Identifier: Apache-2.0
// Slots of rings that a role holds: which are got, read and given back, and when (R4, R10, R12).
#pragma once

#include <string_view>

#include "matile/verify/flow_state.h"

namespace nautilus::matile {

class SlotFlow {
 public:
  explicit SlotFlow(FlowContext& context) : c_(context) {}

  int held(ir::Name ring) const;

  void get(ir::Name ring);
  // A slot is given back only when no product reads it any more.
  void release(ir::Name ring);
  // A step of the ring without its slots: a skip or a jump, as `what` says.
  void pass(ir::Name ring, std::string_view what);
  // An operand or a part that is taken is in a slot that is held; `use` says which it is.
  void check_held(ir::Name part, ir::Name ring, std::string_view use);
  // A result that is staged on a ring has its slot, and nothing reads that any more.
  void stage(const Store& op);

 private:
  FlowContext& c_;
};

}  // namespace nautilus::matile

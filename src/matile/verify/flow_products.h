// SPDX-License-Identifier: Apache-2.0
// Products that a role issues and waits for: their operands are there, no two of them write the
// same registers unless they are a chain, and waits say what they wait for (R4).
#pragma once

#include "matile/verify/flow_slots.h"
#include "matile/verify/flow_tiles.h"

namespace nautilus::matile {

class ProductFlow {
 public:
  ProductFlow(FlowContext& context, SlotFlow& slots, TileFlow& tiles)
      : c_(context), slots_(slots), tiles_(tiles) {}

  void issue(const Dot& op);
  // Of the instructions of a warp, which are done when they end.
  void compute(const WarpDot& op);
  void wait(const Wait& op);

 private:
  // How many groups may run when the last product into `acc` is waited for.
  void check_leaves(const std::string& acc, size_t leaves);

  FlowContext& c_;
  SlotFlow& slots_;
  TileFlow& tiles_;
};

}  // namespace nautilus::matile

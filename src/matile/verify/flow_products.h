// SPDX-License-Identifier: Apache-2.0
// Products that a role issues and waits for: their operands are ready, no two of them write the
// same registers unless they are a chain, and waits name the right accumulator and number (R4).
#pragma once

#include "matile/verify/flow_slots.h"
#include "matile/verify/flow_tiles.h"

namespace nautilus::matile {

class ProductFlow {
 public:
  ProductFlow(FlowContext& context, SlotFlow& slots, TileFlow& tiles)
      : c_(context), slots_(slots), tiles_(tiles) {}

  void issue(const Dot& op);
  // For instructions of a single warp, which are synchronous.
  void compute(const WarpDot& op);
  void wait(const Wait& op);

 private:
  // Checks the number of products that may still run when the last product into `acc` is waited
  // for.
  void check_leaves(const std::string& acc, size_t leaves);

  FlowContext& c_;
  SlotFlow& slots_;
  TileFlow& tiles_;
};

}  // namespace nautilus::matile

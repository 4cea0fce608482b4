// SPDX-License-Identifier: Apache-2.0
#include "matile/verify/flow_slots.h"

#include <fmt/format.h>

#include <algorithm>

namespace nautilus::matile {

int SlotFlow::held(ir::Name ring) const {
  const auto it = c_.state.held.find(std::string(ring.str()));
  return it == c_.state.held.end() ? 0 : it->second;
}

void SlotFlow::get(ir::Name ring) {
  const RingInfo* info = c_.resources.ring(ring);
  int& count = c_.state.held[std::string(ring.str())];
  if (++count > info->slots())
    c_.fail(fmt::format("`{}` has {}, this role would hold {}", ring.str(),
                        diag::counted(static_cast<size_t>(info->slots()), "slot", "slots"), count));
  for (IssuedProduct& p : c_.state.pending) {
    for (auto& slot : p.slots) {
      if (slot.first == ring.str()) ++slot.second;
    }
  }
}

void SlotFlow::release(ir::Name ring) {
  int& count = c_.state.held[std::string(ring.str())];
  if (count == 0) return c_.fail(fmt::format("no slot of `{}` is held", ring.str()));
  const int oldest = count - 1;
  for (const IssuedProduct& p : c_.state.pending) {
    const bool reads = std::any_of(p.slots.begin(), p.slots.end(), [&](const auto& slot) {
      return slot.first == ring.str() && slot.second >= oldest;
    });
    if (!reads) continue;
    c_.fail(
        fmt::format("the product into `{}` may still read the slot of `{}` that is released "
                    "here; a wait is missing before",
                    p.acc, ring.str()));
    break;
  }
  if (--count == 0) c_.state.held.erase(std::string(ring.str()));
}

void SlotFlow::pass(ir::Name ring, std::string_view what) {
  if (held(ring) > 0) c_.fail(fmt::format("a {} while a slot of the ring is held", what));
}

void SlotFlow::check_held(ir::Name slot_tile, ir::Name ring, std::string_view use) {
  if (held(ring) == 0)
    c_.fail(
        fmt::format("`{}` is {}, but no slot of `{}` is held", slot_tile.str(), use, ring.str()));
}

void SlotFlow::stage(const Store& op) {
  const StageInfo* stage = c_.resources.stage(op.stage);
  if (!stage || !stage->op->ring) return;
  const ir::Name ring = stage->op->ring;
  if (held(ring) == 0)
    c_.fail(fmt::format("`{}` is staged on ring `{}`, of which no slot is held", op.tile.str(),
                        ring.str()));
  for (const IssuedProduct& p : c_.state.pending) {
    const bool reads = std::any_of(p.slots.begin(), p.slots.end(),
                                   [&](const auto& slot) { return slot.first == ring.str(); });
    if (reads)
      c_.fail(fmt::format("`{}` is staged on ring `{}` while a product still reads its slot",
                          op.tile.str(), ring.str()));
  }
}

}  // namespace nautilus::matile

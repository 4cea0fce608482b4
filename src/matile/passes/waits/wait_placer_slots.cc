// SPDX-License-Identifier: Apache-2.0
// Slots that are held: when one is got, when it may be released.
#include <fmt/format.h>

#include <algorithm>

#include "matile/passes/waits/wait_placer.h"

namespace nautilus::matile {

using ir::Op;

int WaitPlacer::slot_of(ir::Name slot_tile) {
  const auto ring = ring_of_.find(slot_tile.str());
  if (ring == ring_of_.end()) return -1;
  const auto& held = held_[ring->second];
  return held.empty() ? -1 : held.back();
}

void WaitPlacer::get(const Op& op, ir::Block& out) {
  const std::string ring(op.as<Get>().ring.str());
  auto& held = held_[ring];
  if (static_cast<int>(held.size()) >= slots_.at(ring)) {
    wait_for_slot(ring, held.front(), out);
    release(out);
    if (static_cast<int>(held.size()) >= slots_.at(ring))
      refuse(fmt::format("more slots of `{}` are in use at once than it has", ring));
  }
  held.push_back(next_slot_++);
  out.push_back(op);
}

void WaitPlacer::wait_for_slot(const std::string& ring, int slot, ir::Block& out) {
  for (size_t g = pending_.size(); g-- > 0;) {
    const auto& slots = pending_[g].slots;
    if (std::find(slots.begin(), slots.end(), std::make_pair(ring, slot)) == slots.end()) continue;
    return wait_through(g + 1, out);
  }
}

void WaitPlacer::drain_ring(ir::Name name, ir::Block& out) {
  auto& held = held_[std::string(name.str())];
  while (!held.empty() && !is_refused_) {
    const size_t before = held.size();
    wait_for_slot(std::string(name.str()), held.front(), out);
    release(out);
    if (held.size() == before) refuse(fmt::format("a slot of `{}` is in use here", name.str()));
  }
}

void WaitPlacer::release(ir::Block& out) {
  for (auto& [ring, held] : held_) {
    if (readers_.contains(ring)) continue;
    while (!held.empty() && !is_read_in_flight(ring, held.front()) &&
           (held.size() > 1 || !is_read_later(ring))) {
      out.push_back(ir::make(Release{pool_.name(ring)}));
      held.pop_front();
    }
  }
}

bool WaitPlacer::is_read_in_flight(const std::string& ring, int slot) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const Group& g) {
    return std::find(g.slots.begin(), g.slots.end(), std::make_pair(ring, slot)) != g.slots.end();
  });
}

bool WaitPlacer::is_slot_tile_of(ir::Name slot_tile, const std::string& ring) const {
  const auto it = ring_of_.find(slot_tile.str());
  return it != ring_of_.end() && it->second == ring;
}

WaitPlacer::Next WaitPlacer::first_use(const Op& op, const std::string& ring) const {
  if (const auto* d = op.get<Dot>())
    return is_slot_tile_of(d->a, ring) || is_slot_tile_of(d->b, ring) ? Next::Read : Next::None;
  if (const auto* t = op.get<Take>())
    return is_slot_tile_of(t->slot_tile, ring) ? Next::Read : Next::None;
  if (const auto* s = op.get<Store>()) {
    const auto it = staged_on_.find(s->stage.str());
    return it != staged_on_.end() && it->second == ring ? Next::Read : Next::None;
  }
  if (const auto* g = op.get<Get>()) return g->ring.str() == ring ? Next::Got : Next::None;
  const ir::Block* inner = block_of(op);
  if (!inner) return Next::None;
  const Next next = first_use(*inner, 0, inner->size(), ring);
  // The block may not run at all.
  return next == Next::Got && !op.is<Unroll>() ? Next::None : next;
}

WaitPlacer::Next WaitPlacer::first_use(const ir::Block& block, size_t from, size_t to,
                                       const std::string& ring) const {
  for (size_t k = from; k < to; ++k) {
    const Next next = first_use(block[k], ring);
    if (next != Next::None) return next;
  }
  return Next::None;
}

// Whether some path from here reads the newest slot of the ring before another is got.
bool WaitPlacer::is_read_later(const std::string& ring) const {
  for (size_t f = frames_.size(); f-- > 0;) {
    const Frame& frame = frames_[f];
    const Next rest = first_use(*frame.block, frame.next, frame.block->size(), ring);
    if (rest == Next::Read) return true;
    if (rest == Next::Got) return false;
    if (frame.is_loop && first_use(*frame.block, 0, frame.next, ring) == Next::Read) return true;
  }
  return false;
}

}  // namespace nautilus::matile

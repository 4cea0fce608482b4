// SPDX-License-Identifier: Apache-2.0
#include "layout/register_table.h"

namespace nautilus::layout {

RegisterTable::RegisterTable(const Layout& layout) {
  for (size_t axis = 0; axis < layout.shape().size(); ++axis) {
    std::vector<Place>& places = of_axes_.emplace_back(static_cast<size_t>(layout.shape()[axis]));
    for (const Digit& digit : layout.digits()) {
      if (digit.axis != static_cast<int>(axis)) continue;
      for (size_t at = 0; at < places.size(); ++at)
        places[at][digit.owner] +=
            static_cast<int>(at) / digit.stride % digit.extent * digit.owner_stride;
    }
  }
  const auto copies = [&](Owner owner) {
    std::vector<int> out(static_cast<size_t>(layout.extent(owner)));
    for (const Digit& digit : layout.digits()) {
      if (digit.axis != kCopies || digit.owner != owner) continue;
      for (size_t at = 0; at < out.size(); ++at)
        out[at] += static_cast<int>(at) / digit.owner_stride % digit.extent * digit.owner_stride;
    }
    return out;
  };
  copies_of_groups_ = copies(Owner::WarpGroup);
  copies_of_warps_ = copies(Owner::Warp);
  copies_of_lanes_ = copies(Owner::Lane);
}

std::optional<int> RegisterTable::register_of(std::span<const int> coordinates,
                                              const Place& thread) const {
  Place place;
  for (size_t axis = 0; axis < of_axes_.size(); ++axis) {
    const Place& part = of_axes_[axis][static_cast<size_t>(coordinates[axis])];
    place.warp_group += part.warp_group;
    place.warp += part.warp;
    place.lane += part.lane;
    place.reg += part.reg;
  }
  // Which copy the thread could hold follows from its own indices. A thread outside holds nothing.
  const auto add = [](int& sum, const std::vector<int>& copies, int at) {
    if (static_cast<size_t>(at) < copies.size()) sum += copies[static_cast<size_t>(at)];
  };
  add(place.warp_group, copies_of_groups_, thread.warp_group);
  add(place.warp, copies_of_warps_, thread.warp);
  add(place.lane, copies_of_lanes_, thread.lane);
  if (!place.same_thread(thread)) return std::nullopt;
  return place.reg;
}

}  // namespace nautilus::layout

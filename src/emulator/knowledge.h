// SPDX-License-Identifier: Apache-2.0
//
// A vector clock per warp, passed on through barriers. It decides whether an access is ordered
// after another, independent of the order in which a run happened to make them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nautilus::emulator {

struct Knowledge {
  // By mbarrier of the cluster: completed phases that were waited for. Loads announce themselves
  // through these.
  std::vector<int64_t> phases;
  // By warp of the cluster (Warp::clock): the period of its work that is known to be over. A warp
  // begins a new period whenever it arrives at a barrier; its own entry is the current one. Warps
  // know of all others, barriers of those that arrived.
  std::vector<uint32_t> periods;

  void merge(const Knowledge& other) {
    if (phases.size() < other.phases.size()) phases.resize(other.phases.size());
    for (size_t i = 0; i < other.phases.size(); ++i) {
      phases[i] = std::max(phases[i], other.phases[i]);
    }
    if (periods.size() < other.periods.size()) periods.resize(other.periods.size());
    for (size_t i = 0; i < other.periods.size(); ++i) {
      periods[i] = std::max(periods[i], other.periods[i]);
    }
  }
  void see_phase(size_t barrier, int64_t completed) {
    if (phases.size() <= barrier) phases.resize(barrier + 1);
    phases[barrier] = std::max(phases[barrier], completed);
  }
  int64_t phases_of(size_t barrier) const { return barrier < phases.size() ? phases[barrier] : 0; }
};

// Of every place (a granule or a word) and warp of the cluster, the period of the last access of
// one kind; 0 if there was none. Takes memory from the first access on: many kernels have none of
// some kind.
class LastAccess {
 public:
  LastAccess(size_t places, size_t warps) : places_(places), warps_(warps) {}

  void set(size_t place, size_t warp, uint32_t period) {
    if (periods_.empty()) periods_.resize(places_ * warps_);
    periods_[place * warps_ + warp] = period;
  }
  void clear(size_t place) {
    if (periods_.empty()) return;
    std::fill_n(periods_.begin() + static_cast<std::ptrdiff_t>(place * warps_), warps_, 0);
  }
  // A warp with an access that is not known to be over, or -1.
  int unknown_to(const Knowledge& knowledge, size_t place) const {
    if (periods_.empty()) return -1;
    const uint32_t* row = periods_.data() + place * warps_;
    for (size_t warp = 0; warp < warps_; ++warp) {
      if (row[warp] > knowledge.periods[warp]) return static_cast<int>(warp);
    }
    return -1;
  }

 private:
  size_t places_;
  size_t warps_;
  std::vector<uint32_t> periods_;
};

}  // namespace nautilus::emulator

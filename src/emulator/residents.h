// SPDX-License-Identifier: Apache-2.0
// The clusters that run, each on stacks of its own; others begin where one has ended. They begin in
// a random order: no kernel may count on one.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/machine.h"

namespace nautilus::emulator {

class Residents {
 public:
  // Kernels are compiled without optimization: register tiles and all temporaries are on the stack.
  static constexpr size_t kStackBytes = 128 * 1024;

  explicit Residents(Machine& machine)
      : machine_(machine), order_(static_cast<size_t>(machine.launch.grid / machine.cluster)) {
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int>(i);
    for (size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[machine.random.next() % i]);
    const int count =
        std::clamp(machine.options.resident / machine.cluster, 1, static_cast<int>(order_.size()));
    for (int i = 0; i < count; ++i) {
      std::vector<Stacks*> own;
      for (int rank = 0; rank < machine.cluster; ++rank) {
        stacks_.push_back(std::make_unique<Stacks>(machine.launch.threads, kStackBytes));
        own.push_back(stacks_.back().get());
      }
      clusters_.push_back(std::make_unique<Cluster>(machine, order_[next_++], own));
      for (const auto& cta : clusters_.back()->ctas) ctas_.push_back(cta.get());
    }
  }

  const std::vector<Cta*>& ctas() const { return ctas_; }  // those that are not over

  // Of a CTA that is over; true if the CTAs of another cluster are in its place.
  bool end(size_t which) {
    Cta& cta = *ctas_[which];
    cta.check_exit();
    machine_.progress.cta_ended(machine_.statistics.steps);
    ctas_.erase(ctas_.begin() + static_cast<std::ptrdiff_t>(which));
    if (machine_.is_failed() || !cta.cluster.is_over()) return false;
    for (const auto& one : cta.cluster.ctas) one->check_cluster_exit();
    if (machine_.is_failed() || next_ == order_.size()) return false;
    const auto place = std::find_if(clusters_.begin(), clusters_.end(),
                                    [&](const auto& c) { return c.get() == &cta.cluster; });
    const auto first = (place - clusters_.begin()) * machine_.cluster;
    std::vector<Stacks*> own;
    for (int rank = 0; rank < machine_.cluster; ++rank) {
      own.push_back(stacks_[static_cast<size_t>(first + rank)].get());
    }
    *place = nullptr;  // before the stacks are used again
    *place = std::make_unique<Cluster>(machine_, order_[next_++], own);
    auto at = ctas_.begin() + static_cast<std::ptrdiff_t>(which);
    for (const auto& one : (*place)->ctas) at = ctas_.insert(at, one.get()) + 1;
    return true;
  }

 private:
  Machine& machine_;
  std::vector<int> order_;  // in which clusters begin
  size_t next_ = 0;
  std::vector<std::unique_ptr<Stacks>> stacks_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<Cta*> ctas_;
};

}  // namespace nautilus::emulator

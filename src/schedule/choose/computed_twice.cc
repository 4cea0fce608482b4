// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/computed_twice.h"

#include <algorithm>
#include <map>

namespace nautilus::schedule {
namespace {

// Members of a step of the loop that are products, or made of such.
std::set<int> made_of_products(const Fusion& fusion, const StatementList& list) {
  std::set<int> out;
  for (const Dot& d : fusion.dots) out.insert(fusion.members[d.member].statement);
  for (const Member& m : fusion.members) {
    const auto& reads = list.statements[static_cast<size_t>(m.statement)].reads_from;
    if (std::any_of(reads.begin(), reads.end(), [&](int r) { return out.contains(r); }))
      out.insert(m.statement);
  }
  std::erase_if(out, [&](int id) {
    return std::none_of(fusion.members.begin(), fusion.members.end(),
                        [&](const Member& m) { return m.statement == id && m.has(fusion.stream); });
  });
  return out;
}

class Readers {
 public:
  Readers(const StatementList& list, const std::vector<Kernel>& kernels, const std::set<int>& plain)
      : list_(list), kernels_(kernels), plain_(plain) {}

  // Whether another kernel, or none, computes the statement.
  bool is_computed_outside(int id, const Kernel& kernel) const {
    if (plain_.contains(id)) return true;
    return std::any_of(kernels_.begin(), kernels_.end(), [&](const Kernel& k) {
      return &k != &kernel && !k.stored.empty() &&
             std::any_of(k.fusion.members.begin(), k.fusion.members.end(),
                         [&](const Member& m) { return m.statement == id; });
    });
  }
  bool is_stored_outside(int id, const Kernel& kernel) const {
    if (plain_.contains(id)) return true;
    return std::any_of(kernels_.begin(), kernels_.end(),
                       [&](const Kernel& k) { return &k != &kernel && k.stored.contains(id); });
  }
  // Whether a statement outside the kernel depends both on results of the kernel and on the stored
  // statement.
  bool read_both(int stored, const Kernel& kernel) const {
    std::map<int, std::pair<bool, bool>> reads;  // results of the kernel, the stored one
    for (const Statement& s : list_.statements) {
      auto& [results, other] = reads[s.id];
      if (kernel.stored.contains(s.id)) {
        results = true;
        continue;
      }
      for (int r : s.reads_from) {
        results |= reads[r].first;
        other |= r == stored || reads[r].second;
      }
      if (results && other && is_computed_outside(s.id, kernel)) return true;
    }
    return false;
  }

 private:
  const StatementList& list_;
  const std::vector<Kernel>& kernels_;
  const std::set<int>& plain_;
};

}  // namespace

std::vector<ComputedTwice> computed_twice(const StatementList& list,
                                          const std::vector<Kernel>& kernels,
                                          const std::set<int>& plain) {
  std::vector<ComputedTwice> out;
  const Readers readers(list, kernels, plain);
  for (const Kernel& k : kernels) {
    if (k.stored.empty()) continue;
    for (int id : made_of_products(k.fusion, list)) {
      if (readers.is_stored_outside(id, k) && readers.read_both(id, k))
        out.push_back({k.fusion.seed, id});
    }
  }
  return out;
}

}  // namespace nautilus::schedule

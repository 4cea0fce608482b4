// SPDX-License-Identifier: Apache-2.0
// Remembers how candidates of kernels were ranked. A program is scheduled several times, each time
// after a kernel gave something up; the other kernels have the same candidates each time.
#pragma once

#include <map>
#include <vector>

#include "schedule/choose/candidates.h"

namespace nautilus::schedule {

// Belongs to one pool of expressions.
class RankMemo {
 public:
  // As rank_candidates.
  const std::vector<Ranked>& rank(const Kernel& kernel, const ir::Program& program,
                                  const Target& target, expr::ExprPool& pool);

  // How many kernels were not known.
  size_t count() const { return count_; }

 private:
  // What a kernel computes, as numbers and nodes: its members at their axes, and what it stores.
  using Key = std::vector<const void*>;
  struct OfProgram {
    ir::Program program;
    const Target* target;
    std::map<Key, std::vector<Ranked>> known;
  };
  std::vector<OfProgram> programs_;
  size_t count_ = 0;
};

}  // namespace nautilus::schedule

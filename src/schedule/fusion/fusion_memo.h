// SPDX-License-Identifier: Apache-2.0
// Remembers fusions. A program is scheduled several times, each time after a kernel gave something
// up; most of its fusions are the same each time.
#pragma once

#include <tuple>

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

// Belongs to one pool of expressions.
class FusionMemo {
 public:
  // As grow_fusion; `list` is that of the program.
  Outcome<Fusion> grow(const StatementList& list, const ir::Program& program,
                       const FusionRequest& request, expr::ExprPool& pool);

  // How many were not known.
  size_t count() const { return count_; }

 private:
  struct Grown {
    // Whether other kernels have these statements: only these mattered.
    std::map<int, bool> provided;
    Outcome<Fusion> fusion;
  };
  using Key = std::tuple<int, std::set<int>, std::set<int>, const void*>;
  struct OfProgram {
    explicit OfProgram(ir::Program of) : program(std::move(of)) {}
    ir::Program program;
    std::map<Key, std::vector<Grown>> grown = {};  // by the rest of the request
  };
  std::vector<OfProgram> programs_;
  size_t count_ = 0;
};

}  // namespace nautilus::schedule

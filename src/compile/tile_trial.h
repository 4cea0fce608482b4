// SPDX-License-Identifier: Apache-2.0
// Finds out whether a scheduled nest has a tile kernel by lowering it alone. A schedule consists of
// nests that have one; the others go back to the statements that they were made of.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "ir/pass.h"

namespace nautilus::compile {

// Remembers the results: schedules that differ in one kernel have the other nests in common, and a
// nest depends only on what it names of the program. Belongs to one pool of expressions.
class TileTrials {
 public:
  // Empty if the grid nest of the scheduled program becomes a kernel, else why it does not.
  std::string refusal(const ir::Program& program, const ir::Op& nest, ir::PassContext& context);

  // How many nests were lowered.
  size_t count() const { return known_.size(); }

  // Why some of them are no kernels.
  std::vector<std::string> refusals() const;

 private:
  // Empty if the program becomes kernels.
  const std::string& lowered(const ir::Program& program, ir::PassContext& context);

  struct Hash {
    size_t operator()(const ir::Program& program) const;
  };
  std::unordered_map<ir::Program, std::string, Hash> known_;
};

}  // namespace nautilus::compile

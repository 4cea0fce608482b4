// SPDX-License-Identifier: Apache-2.0
#include "schedule/auto.h"

#include <fmt/format.h>

namespace nautilus::schedule {

AutoSchedule auto_schedule(const ir::Program& program, expr::ExprPool& pool) {
  AutoSchedule out;
  const StatementList list = statements_of(program, pool);
  std::set<int> tried;
  while (true) {
    const std::set<int> plain = remaining(list, out.kernels);
    int seed = -1;
    for (int id : plain) {
      const Statement& s = list.statements[static_cast<size_t>(id)];
      if (!s.is_opaque && s.is_reduction() && !tried.contains(id)) seed = id;
    }
    if (seed < 0) return out;
    tried.insert(seed);
    GroupRequest request;
    request.seed = seed;
    for (const Kernel& k : out.kernels) {
      for (const Member& m : k.group.members) {
        if (!m.has(k.group.stream)) request.provided.insert(m.statement);
      }
    }
    Outcome<Group> group = grow_group(list, program, request, pool);
    if (!group) {
      out.notes.push_back(fmt::format("{} starts no kernel: {}",
                                      list.statements[static_cast<size_t>(seed)].target.str(),
                                      group.rejection().message));
      continue;
    }
    out.kernels.push_back({*group, choose_sizes(*group), {}});
    // Kernels that would wait for each other are not built.
    if (!assemble(program, list, out.kernels, pool)) {
      out.notes.push_back(
          fmt::format("{} starts no kernel: it would wait for another one that "
                      "waits for it",
                      list.statements[static_cast<size_t>(seed)].target.str()));
      out.kernels.pop_back();
    }
  }
}

}  // namespace nautilus::schedule

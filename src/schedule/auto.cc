// SPDX-License-Identifier: Apache-2.0
#include "schedule/auto.h"

#include <fmt/format.h>

namespace nautilus::schedule {

AutoSchedule auto_schedule(const ir::Program& program, expr::ExprPool& pool) {
  AutoSchedule out;
  const StatementList list = statements_of(program, pool);
  const algebra::Signs signs(program);
  std::set<int> tried;
  // Seeds that force an earlier pass wait: another seed may have the cascade in one.
  std::set<int> waiting;
  while (true) {
    const std::set<int> plain = remaining(list, out.kernels);
    int seed = -1;
    for (int id : plain) {
      const Statement& s = list.statements[static_cast<size_t>(id)];
      if (!s.is_opaque && s.is_reduction() && !tried.contains(id) && !waiting.contains(id))
        seed = id;
    }
    const bool is_last_chance = seed < 0;
    for (int id : plain) {
      if (is_last_chance && waiting.contains(id) && !tried.contains(id)) seed = id;
    }
    if (seed < 0) break;
    GroupRequest request;
    request.seed = seed;
    for (const Kernel& k : out.kernels) {
      for (const Member& m : k.group.members) {
        if (!m.has(k.group.stream)) request.provided.insert(m.statement);
      }
    }
    Outcome<Group> group = grow_group(list, program, request, pool);
    if (group && group->is_cut && !is_last_chance) {
      waiting.insert(seed);
      continue;
    }
    tried.insert(seed);
    if (!group) {
      out.notes.push_back(fmt::format("{} starts no kernel: {}",
                                      list.statements[static_cast<size_t>(seed)].target.str(),
                                      group.rejection().message));
      continue;
    }
    const Sizes sizes = choose_sizes(*group);
    std::string why;
    const Split split = choose_split(*group, sizes, program, signs, pool, &why);
    if (!why.empty()) (*group).notes.push_back(std::move(why));
    out.kernels.push_back({*group, sizes, {}, split});
    // Kernels that would wait for each other are not built.
    if (!assemble(program, list, out.kernels, pool)) {
      out.notes.push_back(
          fmt::format("{} starts no kernel: it would wait for another one that "
                      "waits for it",
                      list.statements[static_cast<size_t>(seed)].target.str()));
      out.kernels.pop_back();
    }
  }
  // Kernels that later ones made superfluous.
  remaining(list, out.kernels);
  std::erase_if(out.kernels, [](const Kernel& k) { return k.stored.empty(); });
  return out;
}

}  // namespace nautilus::schedule

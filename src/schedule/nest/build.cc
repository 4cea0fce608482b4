// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/build.h"

#include <fmt/format.h>

#include "expr/print.h"
#include "schedule/nest/nest_builder.h"

namespace nautilus::schedule {

BuiltKernel build_kernel(const Group& group, const Sizes& sizes, const std::vector<Sizes>& others,
                         const Split& split, const std::set<int>& stored,
                         const ir::Program& program, const algebra::Signs& signs,
                         expr::ExprPool& pool, Names& names) {
  BuiltKernel out;
  ir::Axes once;
  const auto add_whole = [&](const Sizes& own) {
    BuiltKernel whole =
        NestBuilder(group, own, stored, program, signs, pool, names, nullptr).run(once);
    whole.wholes[0].nest = out.nests.size();
    if (out.notes.empty()) out.notes = whole.notes;
    if (!out.refused) out.refused = whole.refused;
    out.decided.push_back(whole.decided[0]);
    out.wholes.push_back(whole.wholes[0]);
    out.locals.insert(out.locals.end(), whole.locals.begin(), whole.locals.end());
    out.summaries.insert(out.summaries.end(), whole.summaries.begin(), whole.summaries.end());
    out.before.insert(out.before.end(), whole.before.begin(), whole.before.end());
    out.nests.push_back(std::move(whole.nests[0]));
  };
  if (split.is_on()) {
    const SplitSizes s = name_split_sizes(group, split, pool, names);
    NestBuilder parts(group, sizes, stored, program, signs, pool, names, &s);
    out = parts.run({});
    const Expr tiles = count_tiles(group, parts.tiling(), pool);
    out.sizes = declare_split_sizes(s, group, sizes, split, tiles, program, pool);
    out.notes.push_back(fmt::format("{} parts of {} steps, for {} tiles", s.parts.name().str(),
                                    s.each.name().str(), expr::to_string(tiles)));
    if (!split.or_whole) return out;
    once.push_back({s.once.name(), s.whole});
    for (const Sizes& other : others) add_whole(other);
    return out;
  }
  add_whole(sizes);
  for (const Sizes& other : others) add_whole(other);
  return out;
}

std::set<int> needs_of(const Group& group, const StatementList& list, const std::set<int>& stored) {
  std::set<int> members;
  for (const Member& m : group.members) members.insert(m.statement);
  std::set<int> needs;
  std::set<int> seen;
  auto visit = [&](auto& self, int id) -> void {
    if (!seen.insert(id).second) return;
    for (int r : list.statements[static_cast<size_t>(id)].reads_from)
      members.contains(r) ? self(self, r) : void(needs.insert(r));
  };
  for (int id : stored) visit(visit, id);
  return needs;
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/build.h"

#include <fmt/format.h>

#include "expr/print.h"
#include "schedule/nest/nest_builder.h"

namespace nautilus::schedule {

BuiltKernel build_kernel(const FusionScope& scope, const TileConfig& sizes,
                         const std::vector<TileConfig>& others, const Split& split,
                         const std::set<int>& stored, Names& names) {
  BuiltKernel out;
  ir::Axes once;
  const auto add_whole = [&](const TileConfig& own) {
    BuiltKernel whole = NestBuilder(scope, own, stored, names, nullptr).run(once);
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
    const SplitSizes s = name_split_sizes(scope.fusion, split, scope.pool, names);
    NestBuilder parts(scope, sizes, stored, names, &s);
    out = parts.run({});
    const Expr tiles = count_tiles(scope.fusion, parts.tiling(), scope.pool);
    out.sizes = declare_split_sizes(scope, s, sizes, split, tiles);
    out.notes.push_back(fmt::format("{} parts of {} steps, for {} tiles", s.parts.name().str(),
                                    s.steps_per_part.name().str(), expr::to_string(tiles)));
    if (!split.or_whole) return out;
    once.push_back({s.run_axis.name(), s.is_whole});
    for (const TileConfig& other : others) add_whole(other);
    return out;
  }
  add_whole(sizes);
  for (const TileConfig& other : others) add_whole(other);
  return out;
}

BuiltKernel build_whole_kernel(const FusionScope& scope, const TileConfig& sizes,
                               const std::set<int>& stored, Names& names) {
  return build_kernel(scope, sizes, {}, {}, stored, names);
}

std::set<int> needs_of(const Fusion& fusion, const StatementList& list,
                       const std::set<int>& stored) {
  std::set<int> members;
  for (const Member& m : fusion.members) members.insert(m.statement);
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

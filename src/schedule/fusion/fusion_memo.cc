// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fusion_memo.h"

#include <algorithm>

namespace nautilus::schedule {

Outcome<Fusion> FusionMemo::grow(const StatementList& list, const ir::Program& program,
                                 const FusionRequest& request, expr::ExprPool& pool) {
  const auto known = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const OfProgram& p) { return p.program == program; });
  OfProgram& own = known == programs_.end() ? programs_.emplace_back(program) : *known;
  auto& list_of_seed = own.grown[{request.seed, request.outside, request.only, request.row.node()}];
  for (const Grown& g : list_of_seed) {
    const bool is_same = std::all_of(g.provided.begin(), g.provided.end(), [&](const auto& p) {
      return request.provided.contains(p.first) == p.second;
    });
    if (is_same) return g.fusion;
  }
  std::map<int, bool> provided;
  Outcome<Fusion> fusion = grow_fusion(list, program, request, pool, provided);
  ++count_;
  list_of_seed.push_back({std::move(provided), fusion});
  return fusion;
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "schedule/choose/auto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/target_of.h"
#include "schedule/apply/apply.h"
#include "schedule/choose/candidates.h"
#include "schedule/choose/computed_twice.h"
#include "schedule/choose/costly_members.h"
#include "schedule/choose/part_sizes.h"

namespace nautilus::schedule {

namespace {

// The next smaller tiles; nothing after the smallest.
std::optional<TileConfig> smaller(TileConfig s, const target::Tiles& tiles) {
  if (s.warp_groups > tiles.product_groups) {
    s.warp_groups = tiles.product_groups;
  } else if (s.step > tiles.step) {
    s.step = tiles.step;
  } else if (s.column > tiles.columns.back()) {
    s.column /= 2;
  } else if (s.warp_groups > 1) {
    s.warp_groups = 1;
  } else {
    return std::nullopt;
  }
  return s;
}

// The seed and all that it needs.
std::set<int> needed_by(int seed, const StatementList& list) {
  std::set<int> out;
  std::vector<int> work = {seed};
  while (!work.empty()) {
    const int id = work.back();
    work.pop_back();
    if (!out.insert(id).second) continue;
    for (int r : list.statements[static_cast<size_t>(id)].reads_from) work.push_back(r);
  }
  return out;
}

// Products of the fusion that are not its seed.
void add_other_products(const Fusion& fusion, std::set<int>& statements) {
  for (const Dot& d : fusion.dots) {
    const int statement = fusion.members[d.member].statement;
    if (statement != fusion.seed) statements.insert(statement);
  }
}

// Why products of operands pass through memory, before what else the fusion says of them.
void note_outside(const std::set<int>& products, const StatementList& list, std::string_view why,
                  Fusion& fusion) {
  std::vector<std::string> notes;
  for (int id : products) {
    const std::string_view name = list.statements[static_cast<size_t>(id)].target.str();
    notes.push_back(fmt::format("{} stays outside: with it {}", name, why));
    std::erase_if(fusion.notes, [&](const std::string& note) {
      return note.starts_with(fmt::format("{} stays outside: ", name));
    });
  }
  fusion.notes.insert(fusion.notes.begin(), notes.begin(), notes.end());
}

bool has_several_products(const Fusion& fusion) {
  return std::any_of(fusion.dots.begin(), fusion.dots.end(),
                     [&](const Dot& d) { return d.member != fusion.dots[0].member; });
}

}  // namespace

Refusal next_retreat(const Refusal& refusal, const Kernel& refused, const Target& target,
                     std::string why) {
  switch (refusal.given_up) {
    case Retreat::Nothing:
      return {refused.split.is_on() ? Retreat::Parts : Retreat::Alternatives, {}, std::move(why)};
    case Retreat::Parts:
      return {Retreat::Alternatives, {}, std::move(why)};
    case Retreat::Alternatives:
    case Retreat::Tiles:
      if (const auto sizes = smaller(refusal.sizes.value_or(refused.sizes), target.tiles))
        return {Retreat::Tiles, sizes, std::move(why)};
      return {Retreat::Company, {}, std::move(why)};
    case Retreat::Company:
    case Retreat::Products:
      if (const auto sizes = smaller(refusal.sizes.value_or(refused.sizes), target.tiles))
        return {refusal.given_up, sizes, std::move(why)};
      if (refusal.given_up == Retreat::Company && has_several_products(refused.fusion))
        return {Retreat::Products, {}, std::move(why)};
      break;
    case Retreat::Kernel:
      break;
  }
  return {Retreat::Kernel, {}, std::move(why)};
}

namespace {

// Kernels as they are fused, before their sizes are chosen.
struct Fused {
  AutoSchedule schedule;
  std::map<int, Retreat> given_up;  // by the kernels of these seeds
  std::map<int, std::string> idle;  // seeds that start none, and why; the last one first
};

class Fuser {
 public:
  Fuser(const StatementList& list, const ir::Program& program, const algebra::Signs& signs,
        const Refusals& refusals, FusionMemo& fusions, expr::ExprPool& pool)
      : list_(list),
        program_(program),
        signs_(signs),
        refusals_(refusals),
        fusions_(fusions),
        pool_(pool) {}

  // `apart`: statements that stay outside of the kernels of these seeds.
  Fused run(const std::map<int, std::set<int>>& apart) {
    fused_ = {};
    tried_.clear();
    waiting_.clear();
    while (const auto seed = next_seed()) start(*seed, apart);
    return std::move(fused_);
  }

 private:
  struct Seed {
    int statement;
    bool is_last_chance;  // only those that wait are left
  };

  std::string_view name_of(int statement) const {
    return list_.statements[static_cast<size_t>(statement)].target.str();
  }

  void starts_none(int seed, std::string_view why) {
    fused_.idle.emplace(-seed, fmt::format("{} starts no kernel of tiles: {}", name_of(seed), why));
  }

  std::optional<Seed> next_seed() {
    const std::set<int> plain = remaining(list_, fused_.schedule.kernels);
    int seed = -1;
    for (int id : plain) {
      const Statement& s = list_.statements[static_cast<size_t>(id)];
      if (!s.is_opaque && s.is_reduction() && !tried_.contains(id) && !waiting_.contains(id))
        seed = id;
    }
    const bool is_last_chance = seed < 0;
    for (int id : plain) {
      if (is_last_chance && waiting_.contains(id) && !tried_.contains(id)) seed = id;
    }
    if (seed < 0) return std::nullopt;
    return Seed{seed, is_last_chance};
  }

  FusionRequest request_of(int seed, const std::map<int, std::set<int>>& apart) const {
    FusionRequest request;
    request.seed = seed;
    if (const auto own = apart.find(seed); own != apart.end()) request.outside = own->second;
    for (const Kernel& k : fused_.schedule.kernels) {
      for (const Member& m : k.fusion.members) {
        if (!m.has(k.fusion.stream)) request.provided.insert(m.statement);
      }
    }
    return request;
  }

  Outcome<Fusion> grow(const FusionRequest& request) {
    return fusions_.grow(list_, program_, request, pool_);
  }

  // The fusion without the reductions that close it, where those keep it from being split, or its
  // loop would need them.
  Outcome<Fusion> without_closing(Outcome<Fusion> fusion, FusionRequest request) {
    for (const Member& m : fusion->members) {
      if (m.is_closing) request.outside.insert(m.statement);
    }
    if (request.outside.empty()) return fusion;
    Outcome<Fusion> open = grow(request);
    if (fusion->needs_closing_early()) return open;
    std::string why;
    const bool is_better =
        open && choose_split({*open, program_, signs_, pool_}, choose_sizes(*open), &why).is_on();
    return is_better ? std::move(open) : std::move(fusion);
  }

  // The seed and what it needs, at most.
  Outcome<Fusion> without_company(const Outcome<Fusion>& fusion, const Refusal& refusal,
                                  FusionRequest& request) {
    request.only = needed_by(request.seed, list_);
    if (refusal.given_up == Retreat::Products) add_other_products(*fusion, request.outside);
    Outcome<Fusion> alone = grow(request);
    if (alone && refusal.given_up == Retreat::Products)
      note_outside(request.outside, list_, refusal.why, *alone);
    return alone;
  }

  void start(const Seed& seed, const std::map<int, std::set<int>>& apart) {
    const int id = seed.statement;
    FusionRequest request = request_of(id, apart);
    Outcome<Fusion> fusion = grow(request);
    if (fusion && fusion->is_cut && !seed.is_last_chance) {
      waiting_.insert(id);
      return;
    }
    tried_.insert(id);
    if (!fusion) return starts_none(id, fusion.rejection().message);
    fusion = without_closing(std::move(fusion), request);
    const auto it = refusals_.find(std::string(name_of(id)));
    const Refusal refusal = it == refusals_.end() ? Refusal{} : it->second;
    if (refusal.given_up == Retreat::Company || refusal.given_up == Retreat::Products)
      fusion = without_company(fusion, refusal, request);
    if (!fusion || refusal.given_up == Retreat::Kernel) return starts_none(id, refusal.why);
    fused_.given_up.emplace(id, refusal.given_up);
    add({*fusion, refusal.sizes ? *refusal.sizes : choose_sizes(*fusion), {}, {}, {}}, request);
  }

  // Kernels that would wait for each other are not built.
  void add(Kernel kernel, FusionRequest& request) {
    std::vector<Kernel>& kernels = fused_.schedule.kernels;
    kernels.push_back(std::move(kernel));
    bool is_built = have_order(list_, kernels);
    if (!is_built && request.only.empty()) {
      // Members that joined may need other kernels; the seed alone does not.
      request.only = needed_by(request.seed, list_);
      const Outcome<Fusion> alone = grow(request);
      if (alone) {
        kernels.back() = {*alone, choose_sizes(*alone), {}, {}, {}};
        is_built = have_order(list_, kernels);
      }
    }
    if (is_built) return;
    starts_none(request.seed, "it would wait for another one that waits for it");
    kernels.pop_back();
  }

  const StatementList& list_;
  const ir::Program& program_;
  const algebra::Signs& signs_;
  const Refusals& refusals_;
  FusionMemo& fusions_;
  expr::ExprPool& pool_;
  Fused fused_;
  std::set<int> tried_;
  // Seeds that force an earlier pass wait: another seed may have the cascade in one.
  std::set<int> waiting_;
};

// Again and again, until no statement has to stay outside of a kernel that has it.
Fused fused_apart(Fuser& fuser, const StatementList& list, const ir::Program& program,
                  expr::ExprPool& pool) {
  const ir::UsualSizes sizes(program);
  std::map<int, std::set<int>> apart;
  std::vector<CostlyMember> why_apart;
  Fused fused = fuser.run(apart);
  std::vector<Kernel>& kernels = fused.schedule.kernels;
  std::set<int> plain = remaining(list, kernels);
  while (true) {
    bool is_changed = false;
    // A kernel that has it anyway stays unchanged.
    for (const ComputedTwice& twice : computed_twice(list, kernels, plain))
      is_changed |= apart[twice.seed].insert(twice.statement).second;
    for (const CostlyMember& costly : costly_members(list, kernels, sizes, pool)) {
      if (!apart[costly.seed].insert(costly.statement).second) continue;
      is_changed = true;
      why_apart.emplace_back(costly);
    }
    if (!is_changed) break;
    fused = fuser.run(apart);
    plain = remaining(list, kernels);
  }
  for (const CostlyMember& costly : why_apart) {
    for (Kernel& k : kernels) {
      if (k.fusion.seed != costly.seed) continue;
      const Statement& s = list.statements[static_cast<size_t>(costly.statement)];
      k.fusion.notes.push_back(fmt::format("{} stays outside: {}", s.target.str(), costly.why));
    }
  }
  return fused;
}

// Whether something that the kernel stores needs its reductions. If other kernels have those, what
// is left is an element-wise operand that a kernel without products computes better.
bool stores_results(const Kernel& k, const StatementList& list) {
  std::set<int> results;
  for (const Member& m : k.fusion.members) {
    const auto& reads = list.statements[static_cast<size_t>(m.statement)].reads_from;
    if (m.is_reduction() || m.has(k.fusion.stream) ||
        std::any_of(reads.begin(), reads.end(), [&](int r) { return results.contains(r); }))
      results.insert(m.statement);
  }
  return std::any_of(k.stored.begin(), k.stored.end(),
                     [&](int id) { return results.contains(id); });
}

// Gives a kernel with chosen sizes the parts that it gets by rule.
void choose_parts(Kernel& k, const ir::Program& program, const algebra::Signs& signs,
                  const Target& target, expr::ExprPool& pool) {
  const FusionScope scope{k.fusion, program, signs, pool};
  const KernelInParts parts{k, k.split, program, target, pool};
  std::string why;
  // Alternating groups, and clusters, need many tiles; parts are for few.
  TileConfig in_parts = sizes_for_parts(k, program, target, pool);
  k.split = choose_split(scope, in_parts, &why);
  // Smaller tiles that fill the machine need no second kernel.
  std::string ignored;
  for (const TileConfig& s : k.others) {
    if (k.split.or_whole && !choose_split(scope, s, &ignored).is_on()) {
      k.split = {};
      why.clear();
    }
  }
  if (k.split.or_whole) in_parts = sizes_in_parts(parts, in_parts, &why);
  if (k.split.or_whole && is_whole_faster(parts, in_parts)) {
    k.split = {};
    why.clear();
  }
  if (k.split.or_whole && k.fusion.row_block > 0)
    k.split.combines_last = is_last_tile_faster(parts, in_parts);
  if (!why.empty()) k.fusion.notes.push_back(std::move(why));
  if (k.split.is_on() && !(k.sizes == in_parts)) {
    std::erase(k.others, in_parts);
    k.others.push_back(std::exchange(k.sizes, in_parts));
  }
  if (k.split.is_on() && (!k.split.or_whole || k.fusion.row_block > 0)) k.others.clear();
  if (k.split.or_whole) k.others.insert(k.others.begin(), k.sizes);
}

}  // namespace

AutoSchedule auto_schedule(const ir::Program& program, expr::ExprPool& pool, ScheduleMemo& memo,
                           const Refusals& refusals) {
  const StatementList list = statements_of(program, pool);
  const algebra::Signs signs(program);
  Fuser fuser(list, program, signs, refusals, memo.fusions, pool);
  Fused fused = fused_apart(fuser, list, program, pool);
  AutoSchedule& out = fused.schedule;
  // Kernels that later ones made superfluous. What they store may then have no kernel.
  while (std::erase_if(out.kernels, [&](const Kernel& k) { return !stores_results(k, list); }) > 0)
    remaining(list, out.kernels);
  // Some joined the kernel of another seed.
  for (const Kernel& k : out.kernels) {
    for (const Member& m : k.fusion.members) fused.idle.erase(-m.statement);
  }
  for (auto& [seed, note] : fused.idle) out.notes.push_back(std::move(note));
  const Target& target = ir::target_of(program);
  for (Kernel& k : out.kernels) {
    const Retreat retreat = fused.given_up.at(k.fusion.seed);
    if (retreat >= Retreat::Alternatives) continue;
    choose_kernel(k, memo.ranks.rank(k, program, target, pool));
    if (retreat < Retreat::Parts) choose_parts(k, program, signs, target, pool);
  }
  return out;
}

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/launch/chain_folds.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/target_of.h"
#include "matile/fold_chains.h"
#include "matile/passes/launch/last_choice.h"
#include "matile/resources.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

// The folds of a role, each with the unrolls around it.
class RoleFolds {
 public:
  RoleFolds(const Role& role, int64_t least_terms, expr::ExprPool& pool)
      : least_terms_(least_terms), pool_(pool) {
    for (const auto& [name, tile] : declared_tiles(role)) layouts_.emplace(name, layout_of(tile));
    add(role.body);
  }
  const std::vector<FoldSlots>& all() const { return folds_; }

 private:
  void add(const ir::Block& block) {
    for (const ir::Op& op : block) {
      if (const auto* fold = op.get<Fold>()) {
        const auto layout = [this](std::string_view tile) {
          const auto found = layouts_.find(tile);
          return found == layouts_.end() ? nullptr : &found->second;
        };
        folds_.push_back(fold_slots(*fold, layout, unrolled_, least_terms_, pool_));
      }
      const auto before = unrolled_;
      if (const auto* unroll = op.get<Unroll>()) {
        for (const ir::Axis& a : unroll->axes)
          unrolled_[std::string(a.name.str())] = static_cast<int>(a.extent.integer());
      }
      if (const ir::Block* body = block_of(op)) add(*body);
      unrolled_ = before;
    }
  }

  int64_t least_terms_;
  expr::ExprPool& pool_;
  std::map<std::string, layout::Layout, std::less<>> layouts_;
  std::map<std::string, int> unrolled_;
  std::vector<FoldSlots> folds_;
};

// Chains of the longest fold if so many are asked for.
int64_t most_chains(const std::vector<FoldSlots>& folds, int64_t asked) {
  int64_t most = 1;
  for (const FoldSlots& f : folds) most = std::max<int64_t>(most, f.chains(asked));
  return most;
}

}  // namespace

std::optional<ir::Program> chain_folds(const ir::Program& program, ir::PassContext& context) {
  const target::Tiles& tiles = ir::target_of(program).tiles;
  return map_kernels(
      program, KernelForm::Final, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel out = kernel;
        LastChoice<decision::Chains> choice(out, context);
        std::vector<FoldSlots> folds;
        for (const ir::Op& op : kernel.body) {
          const auto* role = op.get<Role>();
          if (!role) continue;
          const RoleFolds of_role(*role, tiles.chained_terms, context.pool);
          folds.insert(folds.end(), of_role.all().begin(), of_role.all().end());
        }
        const int64_t most = most_chains(folds, tiles.most_chains);
        if (most > 1) {
          const int64_t usual = most_chains(folds, tiles.fold_chains);
          const int64_t count = choice.asked() ? choice.asked()->count.value_or(0) : usual;
          if (count < 1 || most_chains(folds, count) != count)
            choice.refuse(
                fmt::format("its reductions have a power of two of chains up to {}", most));
          out.chains = count;
          choice.took({count, {}});
        }
        if (!choice.end("no reduction of its threads has terms for two chains"))
          return std::nullopt;
        return out;
      });
}

}  // namespace nautilus::matile

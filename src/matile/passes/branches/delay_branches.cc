// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/branches/delay_branches.h"

#include <algorithm>
#include <utility>

#include "decision/choice.h"
#include "matile/rewrite.h"

namespace nautilus::matile {
namespace {

using ir::Op;

bool may_swap(const Touched& a, const Touched& b) {
  const auto is_clear = [](const Names& writes, const Touched& other) {
    return std::none_of(writes.begin(), writes.end(),
                        [&](const std::string& w) { return other.mentions(w); });
  };
  return is_clear(a.writes, b) && is_clear(b.writes, a);
}

ir::Block with_late_branches(ir::Block block) {
  // From the end, so that a branch also passes what an earlier one is followed by.
  for (size_t k = block.size(); k-- > 0;) {
    if (!block[k].is<If>()) continue;
    const Touched branch = touched_by(block[k]);
    for (size_t at = k; at + 1 < block.size(); ++at) {
      const Op& next = block[at + 1];
      if (!next.is<Set>() && !next.is<Fold>()) break;
      if (!may_swap(branch, touched_by(next))) break;
      std::swap(block[at], block[at + 1]);
    }
  }
  return block;
}

}  // namespace

std::optional<ir::Program> delay_branches(const ir::Program& program, ir::PassContext& context) {
  using decision::Moment;
  decision::Choice<decision::Branches> choice(context);
  return map_kernels(
      program, KernelForm::Final, [&](const Kernel& kernel) -> std::optional<Kernel> {
        Kernel out = kernel;
        choice.begin(out.body);
        const bool is_late = !choice.asked() || choice.asked()->moment == Moment::Late;
        for (Op& op : out.body) {
          const auto* role = op.get<Role>();
          if (!role || role->unit != RoleUnit::Groups) continue;
          Role changed = *role;
          changed.body = map_blocks(role->body, with_late_branches);
          if (changed.body == role->body) continue;
          choice.took({is_late ? Moment::Late : Moment::Early, {}});
          if (is_late) op = ir::make(std::move(changed), op.span());
        }
        if (!choice.end("no branch of this kernel can be delayed")) return std::nullopt;
        return out;
      });
}

}  // namespace nautilus::matile

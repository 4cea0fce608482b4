// SPDX-License-Identifier: Apache-2.0
#include "matile/passes/delay_branches.h"

#include <algorithm>
#include <utility>

#include "matile/passes/rewrite.h"

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

std::optional<ir::Program> delay_branches(const ir::Program& program, ir::PassContext&) {
  return map_kernels(program, KernelForm::Final, [&](const Kernel& kernel) {
    Kernel out = kernel;
    for (Op& op : out.body) {
      const auto* role = op.get<Role>();
      if (!role || role->unit != RoleUnit::Groups) continue;
      Role changed = *role;
      changed.body = map_blocks(role->body, with_late_branches);
      op = ir::make(std::move(changed), op.span());
    }
    return std::optional(std::move(out));
  });
}

}  // namespace nautilus::matile

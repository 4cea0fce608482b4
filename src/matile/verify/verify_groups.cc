// SPDX-License-Identifier: Apache-2.0
// `groups` waits for all groups of the role, and `ctas` for those of all CTAs of the cluster, so
// all of them must execute it, equally often (R8). It must not be in a branch or a loop that
// depends on the group's number, or on values read or counted by it, nor where groups alternate
// tiles. (Under a vote there is only register work, see verify_role.cc.)
#include <fmt/format.h>

#include <set>

#include "expr/walk.h"
#include "matile/verify/verify_rules.h"

namespace nautilus::matile {
namespace {

class GroupMeetings {
 public:
  GroupMeetings(const Role& role, diag::Sink& sink) : sink_(sink) {
    if (role.index) differs_.emplace(role.index.str());
    block(role.body, {});
  }

 private:
  bool differs(ir::Expr e) const {
    for (ir::Expr v : expr::free_vars(e)) {
      if (differs_.contains(v.name().str())) return true;
    }
    return false;
  }

  // Names of blocks that are closed may come again.
  void define(ir::Name name, bool differs) {
    if (differs)
      differs_.emplace(name.str());
    else
      differs_.erase(std::string(name.str()));
  }

  // `why` not all groups come here; empty if they do.
  void block(const ir::Block& ops, std::string_view why) {
    constexpr std::string_view kBranch = "stands in a branch that groups may take differently";
    constexpr std::string_view kLoop = "stands in a loop that groups may walk differently";
    for (const ir::Op& op : ops) {
      if (const auto* let = op.get<Let>()) {
        define(let->name, differs(let->value));
      } else if (const auto* ticket = op.get<Ticket>()) {
        define(ticket->name, true);  // every group counts on its own
      } else if (const auto* each = op.get<Each>()) {
        const bool is_alternating = each->alternate.value_or(1) != 1;
        define(each->var, is_alternating);
        block(each->body, is_alternating ? "stands in a role whose groups alternate tiles" : why);
      } else if (const auto* loop = op.get<Loop>()) {
        const bool is_own = differs(loop->from) || differs(loop->to);
        define(loop->var, is_own);
        block(loop->body, is_own ? kLoop : why);
      } else if (const auto* unroll = op.get<Unroll>()) {
        for (const ir::Axis& a : unroll->axes) define(a.name, false);
        block(unroll->body, why);
      } else if (const auto* branch = op.get<If>()) {
        block(branch->body, differs(branch->condition) ? kBranch : why);
      } else if (!why.empty() && (op.is<Groups>() || op.is<Ctas>())) {
        const ir::Name tile = op.is<Groups>() ? op.as<Groups>().tile : op.as<Ctas>().tile;
        sink_.report(diag::Code::NotVerified, op.span(),
                     fmt::format("`{} {}` {}: a group would wait for one that does not come",
                                 op.info().mnemonic(), tile.str(), why));
      }
    }
  }

  diag::Sink& sink_;
  std::set<std::string, std::less<>> differs_;
};

}  // namespace

void verify_groups(const Role& role, diag::Sink& sink) { GroupMeetings(role, sink); }

}  // namespace nautilus::matile

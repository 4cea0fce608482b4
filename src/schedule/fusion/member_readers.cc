// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/member_readers.h"

#include <utility>

#include "expr/walk.h"
#include "schedule/fusion/axis_list.h"

namespace nautilus::schedule {

void MemberReaders::join(int statement) {
  is_member_[static_cast<size_t>(statement)] = true;
  joined_.push_back(statement);
}

std::optional<int> MemberReaders::next(bool takes_axes) {
  ask();
  std::set<int>& asked = asked_[takes_axes ? 1 : 0];
  if (asked.empty()) return std::nullopt;
  const int id = *asked.begin();
  asked.erase(asked.begin());
  return id;
}

// Those that read new members, themselves or, reductions, through element-wise ones outside.
void MemberReaders::ask() {
  if (joined_.empty()) return;
  std::vector<int> work = std::exchange(joined_, {});
  std::set<int> passed;
  for (size_t k = 0; k < work.size(); ++k) {
    const int id = work[k];
    through_.erase(id);
    for (int r : at(id).read_by) {
      const Statement& s = at(r);
      if (is_member(id) || s.is_reduction()) {
        asked_[0].insert(r);
        asked_[1].insert(r);
      }
      if (!is_member(r) && !s.is_opaque && !s.is_reduction() && passed.insert(r).second)
        work.push_back(r);
    }
  }
  passed_.merge(passed);
}

std::vector<Expr> MemberReaders::reads(const Statement& q, bool sees_through) {
  std::vector<Expr> out;
  const auto add_new = [&](Expr e) {
    if (!contains(out, e)) out.push_back(e);
  };
  for (Expr e : q.reads) {
    const Statement* p = list_.producer(e.name());
    if (!p) continue;
    if (fusion_.by_name(e.name())) {
      add_new(e);
    } else if (sees_through && passed_.contains(p->id) && !is_member(p->id)) {
      expr::Substitution map;
      for (size_t k = 0; k < p->axes.size(); ++k) map.emplace(pool_.index(p->axes[k].name), e[k]);
      for (Expr inner : reads_through(*p)) add_new(expr::substitute(pool_, inner, map));
    }
  }
  return out;
}

const std::vector<Expr>& MemberReaders::reads_through(const Statement& p) {
  if (const auto it = through_.find(p.id); it != through_.end()) return it->second;
  std::vector<Expr> found = reads(p, true);
  return through_.emplace(p.id, std::move(found)).first->second;
}

}  // namespace nautilus::schedule

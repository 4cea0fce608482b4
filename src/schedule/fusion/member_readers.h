// SPDX-License-Identifier: Apache-2.0
// The readers of a growing fusion's members. After a new member joins, only its readers are asked
// whether they join, instead of all statements of the program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

class MemberReaders {
 public:
  // The fusion may gain members while this object is in use.
  MemberReaders(const StatementList& list, const Fusion& fusion, expr::ExprPool& pool)
      : list_(list), fusion_(fusion), pool_(pool), is_member_(list.statements.size()) {}

  void join(int statement);
  bool is_member(int statement) const { return is_member_[static_cast<size_t>(statement)]; }

  // The next statement to ask whether it joins, with axes of its own or without, in the order of
  // the program. It reads a member that joined since it was last asked; the answer of all other
  // statements would not change.
  std::optional<int> next(bool takes_axes);

  // The elements of members that a statement reads. For a reduction, element-wise producers outside
  // the fusion count as inlined.
  std::vector<Expr> member_reads(const Statement& q) { return reads(q, q.is_reduction()); }

 private:
  const Statement& at(int id) const { return list_.statements[static_cast<size_t>(id)]; }
  void ask();
  std::vector<Expr> reads(const Statement& q, bool sees_through);
  const std::vector<Expr>& reads_through(const Statement& p);

  const StatementList& list_;
  const Fusion& fusion_;
  expr::ExprPool& pool_;
  std::vector<bool> is_member_;  // by statement
  std::vector<int> joined_;      // members with readers that were not asked yet
  std::set<int> asked_[2];       // [1]: with axes of their own
  std::set<int> passed_;         // element-wise statements outside that read members
  // The elements of members that those read, at their own axes.
  std::map<int, std::vector<Expr>> through_;
};

}  // namespace nautilus::schedule

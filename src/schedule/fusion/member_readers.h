// SPDX-License-Identifier: Apache-2.0
// Who reads the members of a fusion that grows, so that a new member is a question to those alone,
// and not to all statements of the program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "schedule/fusion/fusion.h"

namespace nautilus::schedule {

class MemberReaders {
 public:
  // The fusion gets its members while this is used.
  MemberReaders(const StatementList& list, const Fusion& fusion, expr::ExprPool& pool)
      : list_(list), fusion_(fusion), pool_(pool), is_member_(list.statements.size()) {}

  void join(int statement);
  bool is_member(int statement) const { return is_member_[static_cast<size_t>(statement)]; }

  // The next statement to ask whether it joins, with axes of its own or without, in the order of
  // the program: it reads a member that is new since it was asked. All others would answer as
  // before.
  std::optional<int> next(bool takes_axes);

  // The elements of members that a statement reads; of a reduction also through the element-wise
  // producers that are outside, as if those were written out.
  std::vector<Expr> member_reads(const Statement& q) { return reads(q, q.is_reduction()); }

 private:
  const Statement& at(int id) const { return list_.statements[static_cast<size_t>(id)]; }
  void ask();
  std::vector<Expr> reads(const Statement& q, bool sees_through);
  const std::vector<Expr>& reads_through(const Statement& p);

  const StatementList& list_;
  const Fusion& fusion_;
  expr::ExprPool& pool_;
  std::vector<bool> is_member_;               // by statement
  std::vector<int> joined_;                   // members whose readers were not asked yet
  std::set<int> asked_[2];                    // [1]: with axes of their own
  std::set<int> passed_;                      // element-wise statements behind members, outside
  std::map<int, std::vector<Expr>> through_;  // what those read of members, at their own axes
};

}  // namespace nautilus::schedule

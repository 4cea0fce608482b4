// SPDX-License-Identifier: Apache-2.0
// The decisions that the step from VR-tile to MA-tile reads: who works on the tiles, how they are
// numbered, and how operands arrive. It has no rules of its own: a line that is missing is
// answered by those of the scheduler, if there are any, or the kernel is refused.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decision/choice.h"
#include "lower/tiles/nest_answers.h"

namespace nautilus::lower {

class NestChoices {
 public:
  // `rules`: answer what no line does; null: the lines are complete.
  NestChoices(ir::PassContext& context, NestAnswers* rules)
      : groups(context),
        cluster(context),
        resident(context),
        order(context),
        source(context),
        promote(context),
        fetch_(context),
        bring_(context),
        whole_(context),
        rules_(rules) {}

  void begin(ir::Block& body);
  bool end();

  // Refuses lines about copies of what is not copied, because its own line says so. `later`: lines
  // that other passes read, `copied`: operands that maps bring.
  void refuse_copies(const ir::Block& later, const std::set<std::string>& copied,
                     ir::PassContext& context);

  // What the line says, or else the rules. Nothing if neither does.
  template <class D, class Rule>
  std::optional<D> answer(const D* asked, Rule rule) {
    if (asked) return *asked;
    if (rules_) return rule(*rules_);
    if (missing_.empty()) missing_ = D::info().mnemonic();
    return std::nullopt;
  }
  // Why the kernel cannot be made without the line that was asked for last.
  std::string missing() const;

  // Whether the copy engine brings what element-wise work reads of a tensor.
  bool is_copied(ir::Name tensor, int64_t columns, int64_t copied_columns);
  // It does: not everything that could be copied is.
  void took_copied(ir::Name tensor);
  // Whether a box goes to registers as a whole.
  bool is_whole(ir::Name tensor, int64_t row_bytes);
  // Of a loop with one product, of a computed operand: whether it fetches everything first.
  bool is_fetched_early();
  // Something of such a loop arrives at another time then.
  void took_fetch();
  // Bytes that a miss of the operand's copies brings.
  int64_t promoted_bytes(ir::Name operand, const CopyFacts& facts);

  decision::Choice<decision::Groups> groups;
  decision::Choice<decision::Cluster> cluster;
  decision::Choice<decision::Resident> resident;
  decision::Choice<decision::TileOrder> order;
  decision::Choice<decision::TileSource> source;
  decision::OperandChoice<decision::Promote> promote;

 private:
  void end_fetch();
  std::pair<ir::Name, bool>* find_by_rule(ir::Name tensor);

  decision::Choice<decision::Fetch> fetch_;
  decision::OperandChoice<decision::Bring> bring_;
  decision::OperandChoice<decision::Whole> whole_;
  NestAnswers* rules_;
  // What rules would copy, and whether some use of it is one that a copy serves.
  std::vector<std::pair<ir::Name, bool>> copied_by_rule_;
  std::optional<decision::Moment> fetched_;  // of loops that may fetch everything first
  bool is_fetch_felt_ = false;
  bool has_idle_lines_ = false;
  std::string missing_;
};

}  // namespace nautilus::lower

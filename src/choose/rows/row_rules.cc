// SPDX-License-Identifier: Apache-2.0
#include "choose/rows/row_rules.h"

#include <algorithm>

#include "decision/decisions.h"
#include "estimate/registers.h"

namespace nautilus::choose {

using decision::Moment;
using decision::Switch;
using lower::RowUse;

template <class Line>
Line RowRules::line(Line rule) {
  for (const ir::Block* block : {&lines_, static_cast<const ir::Block*>(&chosen_)}) {
    for (const ir::Op& op : *block) {
      const auto* known = op.get<Line>();
      if (known && known->operand == rule.operand) return *known;
    }
  }
  chosen_.push_back(ir::make(rule));
  return rule;
}

bool RowRules::fits_two_ctas(const RowUse& use) const {
  const target::Rows& rows = target_.rows;
  return use.registers + rows.spare_registers <= rows.pair_registers;
}

// Registers of a thread for the elements that it holds of a row. Of two CTAs of several groups one
// loads while the other reduces or stores: a second CTA is worth more than elements in registers.
int64_t RowRules::budget(const RowUse& use) const {
  const target::Rows& rows = target_.rows;
  if (use.shape.groups == 1) return rows.registers;
  return (fits_two_ctas(use) ? rows.pair_registers : rows.alone_registers) - rows.spare_registers;
}

// If all that is read would fill the registers: the cache has what all rows share.
bool RowRules::is_late(ir::Name tensor, const RowUse& use, int64_t early, int64_t pieces) {
  const target::Rows& rows = target_.rows;
  // Of groups two CTAs fit.
  const int64_t early_of_pair = rows.pair_registers - rows.spare_registers;
  const int64_t most = use.shape.groups > 1 ? early_of_pair : rows.early_registers;
  const bool is_late = early > most && pieces <= rows.late_pieces;
  return line(decision::Shared{tensor, is_late ? Moment::Late : Moment::Early, {}}).moment ==
         Moment::Late;
}

bool RowRules::is_held(ir::Name statement, const RowUse& use, int64_t more) {
  const bool fits = more == 0 || use.registers + more <= budget(use);
  return line(decision::Keep{statement, fits ? Switch::On : Switch::Off, {}}).use == Switch::On;
}

// With one group fewer registers mean more CTAs, so nothing is held that can be computed again.
bool RowRules::stays_unpacked(ir::Name reduction, const RowUse& use, int64_t more) {
  const bool fits = use.shape.groups > 1 && use.registers + more <= budget(use);
  return line(decision::Unpacked{reduction, fits ? Switch::On : Switch::Off, {}}).use == Switch::On;
}

// A second walk reads the row again. One of single elements is for rows of any length, most of
// which the cache still has.
bool RowRules::moves(ir::Name sum, const RowUse& use) {
  const bool is_worth = use.shape.by > 1 || use.shape.each > 1;
  return line(decision::Moving{sum, is_worth ? Switch::On : Switch::Off, {}}).use == Switch::On;
}

int64_t RowRules::registers(const RowUse& use, int64_t tiles) {
  const auto asked = std::find_if(lines_.begin(), lines_.end(),
                                  [](const ir::Op& op) { return op.is<decision::Registers>(); });
  if (asked != lines_.end()) return asked->as<decision::Registers>().compute.value_or(0);
  const target::Rows& rows = target_.rows;
  const target::Limits& limits = target_.limits;
  int64_t count = fits_two_ctas(use) ? rows.pair_registers : rows.alone_registers;
  if (use.shape.groups == 1) {
    // In addition to the tiles: addresses, limits, a few partial results, and numbers unpacked of
    // each tile. A walk has more addresses.
    const int64_t beside =
        rows.other_registers + rows.other_per_tile * std::max<int64_t>(tiles - 2, 0);
    const int64_t least = use.shape.is_held() ? rows.resident_least : rows.walking_least;
    const int64_t steps =
        (use.registers + beside + limits.register_step - 1) / limits.register_step;
    count = std::clamp<int64_t>(steps * limits.register_step, least, limits.launch_registers);
  }
  const int64_t threads = use.shape.groups * rows.threads;
  count = estimate::most_registers(threads, count, limits);
  chosen_.push_back(ir::make(decision::Registers{count, {}, {}}));
  return count;
}

}  // namespace nautilus::choose

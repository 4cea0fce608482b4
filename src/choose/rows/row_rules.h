// SPDX-License-Identifier: Apache-2.0
// How the threads of a row kernel use their registers, where no line says so: they hold as much as
// possible while enough CTAs are resident to hide the latency of loads.
#pragma once

#include "ir/op.h"
#include "lower/rows/row_answers.h"

namespace nautilus::choose {

class RowRules : public lower::RowAnswers {
 public:
  // `lines`: of the kernel, which are followed.
  RowRules(const target::Target& target, const ir::Block& lines) : target_(target), lines_(lines) {}

  bool is_late(ir::Name tensor, const lower::RowUse& use, int64_t early, int64_t pieces) override;
  bool is_held(ir::Name statement, const lower::RowUse& use, int64_t more) override;
  bool stays_unpacked(ir::Name reduction, const lower::RowUse& use, int64_t more) override;
  bool moves(ir::Name sum, const lower::RowUse& use) override;
  int64_t registers(const lower::RowUse& use, int64_t tiles) override;

  // Lines for the questions that no line answered.
  const ir::Block& chosen() const { return chosen_; }

 private:
  int64_t budget(const lower::RowUse& use) const;
  bool fits_two_ctas(const lower::RowUse& use) const;
  // The line of the operand, or a line by rule.
  template <class Line>
  Line line(Line rule);

  const target::Target& target_;
  const ir::Block& lines_;
  ir::Block chosen_;
};

}  // namespace nautilus::choose

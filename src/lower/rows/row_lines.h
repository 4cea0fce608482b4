// SPDX-License-Identifier: Apache-2.0
// The lines of one alternative of a kernel along rows: what they ask for, and what was done.
//
//   RowLines lines(alternative, rows, context);
//   const auto shape = lines.read();          nothing if a line is refused or missing
//   ...                                       the kernel is made; it asks `lines` about registers
//   if (!lines.end(*shape, has_rows)) ...     the decisions are noted in lines.decided()
#pragma once

#include <optional>

#include "decision/choice.h"
#include "lower/rows/row_answers.h"

namespace nautilus::lower {

class RowLines : public RowAnswers {
 public:
  // `is_first`: of the alternatives, the one that takes rows of any length.
  RowLines(const ir::Block& alternative, bool is_first, const RowContext& rows,
           ir::PassContext& context);
  RowLines(const RowLines&) = delete;
  RowLines& operator=(const RowLines&) = delete;

  // The shape that the lines ask for.
  std::optional<RowShape> read();
  void refuse(std::string_view why);
  // `has_rows`: it loads whole rows by vectors, which others can ask for ahead.
  bool end(const RowShape& shape, bool has_rows);
  const ir::Block& decided() const { return decided_; }
  // The lines that are read last, which the kernel's body gets.
  const ir::Block& read_last() const { return read_last_; }

  bool is_late(ir::Name tensor, const RowUse& use, int64_t early, int64_t pieces) override;
  bool is_held(ir::Name statement, const RowUse& use, int64_t more) override;
  bool stays_unpacked(ir::Name reduction, const RowUse& use, int64_t more) override;
  bool moves(ir::Name sum, const RowUse& use) override;
  int64_t registers(const RowUse& use, int64_t tiles) override;

 private:
  template <class D>
  const D* line(decision::OperandChoice<D>& choice, ir::Name operand);
  std::string read_vector(RowShape& shape);
  std::string refused_boundary(const RowShape& shape) const;
  std::string read_hold(RowShape& shape);
  std::string read_lanes(RowShape& shape);
  std::string read_groups(RowShape& shape);
  std::string read_cluster(RowShape& shape);
  std::string read_columns(RowShape& shape);
  std::string read_each(RowShape& shape);
  std::string read_registers(RowShape& shape);
  std::string read_ahead(RowShape& shape);

  const RowContext& rows_;
  bool is_first_;
  ir::Block decided_;
  ir::PassContext context_;
  ir::Block body_;
  ir::Block read_last_;
  decision::Choice<decision::Columns> columns_;
  decision::Choice<decision::Vector> vector_;
  decision::Choice<decision::Hold> hold_;
  decision::Choice<decision::Lanes> lanes_;
  decision::Choice<decision::Groups> groups_;
  decision::Choice<decision::Cluster> cluster_;
  decision::Choice<decision::Each> each_;
  decision::Choice<decision::Registers> registers_;
  decision::Choice<decision::Ahead> ahead_;
  decision::OperandChoice<decision::Shared> shared_;
  decision::OperandChoice<decision::Keep> keep_;
  decision::OperandChoice<decision::Unpacked> unpacked_;
  decision::OperandChoice<decision::Moving> moving_;
  std::string missing_;  // a line that was asked for
};

}  // namespace nautilus::lower

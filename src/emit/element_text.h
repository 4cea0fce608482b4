// SPDX-License-Identifier: Apache-2.0
// Text of one element of register work: coordinates, elements of tiles and of memory, conditions.
// element_text.cc has the text of expressions, element_reads.cc the reads from memory before the
// loop over the registers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emit/elementwise.h"
#include "emit/expression.h"
#include "expr/walk.h"

namespace nautilus::emit {

// Text of expressions at register `e` of a domain.
class ElementText {
 public:
  ElementText(const matile::Domain& domain, const RegisterScope& scope, Writer& out,
              size_t first_limit = 0)
      : domain_(domain), scope_(scope), out_(out), first_limit_(first_limit) {}

  // The limits of all conditions of an expression, written once before the loop.
  void prepare(expr::Expr e);
  std::string at(expr::Expr e, const std::string& reg) { return expression(e, names(reg)); }
  // Declarations of the parts that the text of a long expression would repeat; `at` has their names
  // then, so it belongs behind them, in the same loop.
  std::vector<std::string> name_parts(expr::Expr e, const std::string& reg);
  std::string index(expr::Expr e, const std::string& reg);
  // Integers along one axis, before anything else of the expression. Adds their arrays.
  void read_early(expr::Expr e, EarlyReads& arrays);
  std::string offset(std::string_view tensor, std::span<const expr::Expr> indices,
                     const std::string& reg);

 private:
  // --- what is read before the loop (element_reads.cc)
  // The registers of a thread along one axis.
  struct Along {
    matile::DigitSum index;  // the number of a register among them
    matile::DigitSum whole;  // the register, from that number
    int count = 1;
  };
  Along along_axis(size_t axis) const;
  // Positions as values are the same in every row. The device compiler would keep one for each
  // register of a row vector across the loop over rows, and from one statement to the next: more
  // registers than the row vector itself has.
  void place_anew(expr::Expr axis);
  // Integers of memory that depend on one axis of two are read once for every value of it that the
  // thread has, before the loop.
  void read_along_axis(expr::Expr e);
  // A value per row, under a condition on rows.
  bool is_number_of_rows(expr::Expr e) const;
  // A thread has few rows, but a register for each element of them: a conditional load for each
  // register would be a branch each, and many times the code.
  void read_numbers(expr::Expr e);
  // An integer of each row.
  bool is_of_rows(expr::Expr e) const;
  // Elements of columns that several lanes need: each lane reads a share of them, next to those of
  // its neighbours, and passes them to the others. That needs few addresses instead of one per
  // element.
  std::string from_lanes(expr::Expr e, const std::string& reg);
  expr::Expr of_lane(expr::Expr e) const;
  void read_by_lanes(expr::Expr read, const std::string& name, const char* when = "when");
  bool is_spread(expr::Expr e) const;
  // Whether the lane's digits of a column's number stay within the 32 columns that begin at the
  // register's, and are the same in all warps.
  bool lanes_share_columns() const;

  // --- text (element_text.cc) In tiles of products every element that is read has a condition of
  // its own that keeps it inside. In rows, an outer condition may do that.
  bool is_tile_of_products() const { return domain_.axes.size() == 2; }
  bool is_memory(expr::Expr read) const;
  std::string limits(expr::Expr e, const std::string& name, const std::string& reg, Writer& out);
  bool depends_on_axis(expr::Expr e) const;
  ExpressionNames names(const std::string& reg);
  // A position as a float: the thread's summand, converted once, plus a constant of the register. A
  // factor that all elements share multiplies both, one instruction for each register. Near 0 the
  // precision is that of the thread's summand, so only where results are too narrow to show it
  // (docs/language.md, section 8).
  std::string of_position(expr::Expr e, const std::string& reg);
  // Of an integer that is converted to f32: what registers add to the thread's summand. Empty if
  // that is 0, not a sum, or more than the oracle allows (expr::kCoarsePosition); and for integers
  // that grow faster than positions, which leave the range in which floats are exact.
  std::string register_part(expr::Expr e, const std::string& reg) const;
  std::string variable(expr::Expr var, const std::string& reg);
  std::string element(expr::Expr read, const std::string& reg);
  // An integer under a condition of its own: no branch. `here` keeps the load at its place.
  std::string guarded(expr::Expr e, const std::string& reg, const char* when = "when");
  std::string global(expr::Expr read, const std::string& reg);
  // The summand that unrolling makes a constant (the register's share of coordinates, variables of
  // `unroll`, the constant), and the index without it. Separated, they are one base address per
  // thread and constants that fit into the instructions; in one 32-bit sum every element would have
  // its own address.
  std::pair<expr::Expr, std::string> without_constants(expr::Expr index, const std::string& reg);
  matile::DigitSum register_coordinate(size_t axis) const;

  // In place of a register: coordinates without the register's summand.
  static constexpr const char* kThreadOnly = "";
  // The column that a lane reads for all; not a valid name of a program.
  static constexpr const char* kLaneColumn = "column of a lane";
  static constexpr int kLanes = 32;
  static constexpr int kWarps = 4;
  static constexpr int kFirstOfLanes = 1000;  // numbers of arrays, apart from those of elements

  const matile::Domain& domain_;
  const RegisterScope& scope_;
  Writer& out_;
  size_t first_limit_;
  bool is_address_ = false;  // what is prepared
  std::string place_;        // of the thread, where positions are values
  std::map<expr::Expr, std::string, expr::ByContent> limits_;
  // By register: parts that have a name.
  std::map<std::string, std::map<expr::Expr, std::string, expr::ByContent>> parts_;
  size_t part_count_ = 0;
  std::map<expr::Expr, std::pair<std::string, matile::DigitSum>, expr::ByContent> reads_;
};

}  // namespace nautilus::emit

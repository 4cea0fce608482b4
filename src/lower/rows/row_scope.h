// SPDX-License-Identifier: Apache-2.0
// What all parts of the lowering of one row kernel share: the group that it computes, its tiles and
// names, and the column that its ops are written for. A column of the tiles is not always one of
// the row: warp groups have neighbouring pieces of a row, and walks and pieces shift it.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "expr/walk.h"
#include "lower/rows/row_alternatives.h"
#include "lower/rows/row_answers.h"

namespace nautilus::lower {

struct RowScope {
  RowScope(const RowContext& context, const RowAlternative& alternative, RowAnswers& given);

  // Takes the names of the group, and makes those of the columns.
  void begin();
  ir::Name add_tile(std::string_view stem, expr::DType dtype, bool is_row_vector);
  bool is_tile(ir::Name name) const;

  bool is_kept(const RowStatement& s) const { return kept.contains(std::string(s.target.str())); }
  // A read of consecutive columns, which a tile of the row can hold.
  bool is_along_row(expr::Expr e) const;

  // The tiles have exactly the columns of the row.
  bool is_whole() const { return !exists && shape.is_held() && limit.is_int(shape.capacity()); }
  // The column of the row that a column of the tiles means: CTAs, and groups of each, have
  // neighbouring parts of it.
  expr::Expr in_row(expr::Expr tile_column) const;
  // True in one of the CTAs and groups that have the same, and in lanes that have a row; null if
  // that is always so.
  expr::Expr is_first() const;
  // The condition of a put of elements; null if there is none.
  expr::Expr is_written() const;
  // The same column where tiles begin in front of the row.
  expr::Expr shifted(expr::Expr at_column) const;
  // By how many columns they do; nothing to say if they do not.
  void define_lead(ir::Block& out) const;
  expr::Expr in_range() const;
  // How many columns the row has; fewer than others if it is the last piece of a longer one.
  expr::Expr present() const;
  ir::Axes columns() const { return {{column.name(), pool.integer(extent)}}; }
  // Of tiles that the columns of a row take.
  expr::Expr steps() const;
  // The same of any row, wherever its vectors begin.
  expr::Expr blocks() const;
  // Columns that are written at a time where reads are late. A register has two elements of 16
  // bits.
  int64_t piece() const { return shape.holders(choice) * std::max<int64_t>(shape.by, 2); }

  // Of a thread, for the tiles that there are.
  int64_t registers() const;
  int64_t tile_registers(expr::DType dtype, int64_t tile_columns) const {
    return row_tile_registers(dtype, tile_columns, shape.holders(choice));
  }
  RowUse use() const { return {shape, registers()}; }

  const RowGroup& group;
  const target::Rows& choice;
  const std::set<std::string>& kept;
  const std::map<std::string, ir::TensorType>& buffers;
  const expr::Facts& facts;
  RowAnswers& answers;
  expr::ExprPool& pool;
  FreshNames names;
  RowShape shape;
  expr::Expr limit;                       // the number of columns of the row
  std::optional<RowReference> reference;  // where vectors begin, if not with the row
  expr::Expr lead{};                      // columns of tiles in front of the row; or null
  expr::Expr has_row{};                   // of lanes that share one: whether it is there; or null
  expr::Expr exists;  // of pieces: whether the longer row has the column; null: always
  std::vector<std::pair<ir::Name, ir::TensorType>> tiles;
  expr::Expr column;   // of the tiles
  expr::Expr at;       // the column of the row that it means
  expr::Expr place;    // the column of tiles that hold the whole row
  ir::Name part;       // of the row: the group's number
  ir::Name rank;       // of the CTA, whose groups have neighbouring parts
  int64_t extent = 0;  // of the ops that are written
  // In a walk over the elements of several axes, which are counted through (row_walk.h):
  expr::Substitution outer_at;  // where the outer axes are
  expr::Expr is_walked;         // whether the element exists; or null
  // Numbers that change from step to step of a walk.
  std::unordered_set<ir::Name> moving;
  // Tiles of which each thread has a value of its own.
  std::unordered_set<ir::Name> own;
};

}  // namespace nautilus::lower

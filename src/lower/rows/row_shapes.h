// SPDX-License-Identifier: Apache-2.0
// What a kernel along rows keeps in registers (one of several by the number of columns, see
// choose/rows/row_shapes.h), and what that takes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decision/decisions.h"
#include "lower/kernel/lowered_kernel.h"
#include "lower/rows/row_group.h"

namespace nautilus::lower {

// What all kernels of a group are made from.
struct RowContext {
  const RowGroup& group;
  const std::set<std::string>& kept;  // buffers that are outputs or that later nests read
  const std::map<std::string, ir::TensorType>& buffers;
  const expr::Facts& facts;
  FreshNames& names;
  expr::ExprPool& pool;

  const target::Rows& choice() const { return group.target->rows; }
  expr::Expr columns() const { return group.column.extent; }
  // Of what is read: of the longer row, if rows are pieces of one.
  expr::Expr length() const { return group.exists ? group.exists[1] : columns(); }
};

struct RowShape {
  int64_t columns = 0;  // of the tiles of each group
  int64_t by = 1;       // neighbours of a thread
  decision::HoldKind hold = decision::HoldKind::Steps;
  int64_t groups = 1;  // that share a row: each has as many columns as its tiles
  int64_t ctas = 1;    // of a cluster that share it, each with so many groups
  int64_t each = 1;    // rows of the last outer axis that a step loads
  decision::VectorStart start = decision::VectorStart::Row;  // of the first neighbours
  ir::OptionalInt registers{};                               // of a thread, if a line says so
  ir::OptionalInt ahead{};  // rows that are asked for ahead, if a line says so
  int64_t lanes = 0;  // of a warp that share a row, with several rows in a CTA; 0: all threads

  // Vectors may begin in front of the row.
  bool is_shifted() const { return start == decision::VectorStart::Boundary; }
  // Columns of tiles that a row of any alignment has at most, in addition to its own.
  int64_t most_lead() const { return is_shifted() ? by - 1 : 0; }
  bool is_held() const { return hold != decision::HoldKind::Steps; }
  // Threads that the columns of a tile are spread over.
  int64_t holders(const target::Rows& rows) const { return lanes > 0 ? lanes : rows.threads; }
  // Rows that a CTA has at a time.
  int64_t rows_of_cta(const target::Rows& rows) const {
    return lanes > 0 ? rows.threads / lanes : 1;
  }
  int64_t of_cta() const { return groups * columns; }
  int64_t capacity() const { return ctas * of_cta(); }
};

// A tensor that is read or written along the row, and where its first column is: vectors of all
// tensors are taken where this one has boundaries in memory. Nothing if the place of a row is only
// known from values.
struct RowReference {
  ir::TensorType type;
  std::vector<expr::Expr> at;
};
std::optional<RowReference> row_reference(const RowContext& context);
// Whether all rows are whole vectors of so many elements: they begin where vectors do.
bool are_whole_vectors(const RowContext& context, int64_t by);
// Elements of the narrowest tensor in a vector, within what rows of the target have.
int64_t most_row_vector(const RowContext& context);
// What a row of the shape takes of a thread's registers, and what there is for it.
struct RowRoom {
  int64_t needed = 0;
  int64_t given = 0;
};
RowRoom row_room(const RowContext& context, const RowShape& shape);

// Element-wise work: a row need not stay together.
bool has_elements_only(const RowGroup& group);
// Reads along the row that all rows share and that no reduction needs: they may be loaded piece by
// piece while elements are written.
std::vector<expr::Expr> shared_by_rows(const RowGroup& group, expr::ExprPool& pool);
// Registers of one of so many threads for a tile of so many columns.
int64_t row_tile_registers(expr::DType dtype, int64_t columns, int64_t threads);

}  // namespace nautilus::lower

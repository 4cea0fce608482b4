// SPDX-License-Identifier: Apache-2.0
// Which nests are work along rows: they share all their leading axes, and their last axis is
// reduced or mapped, nothing else. From structure alone:
//
//   for i < M map                       the rows are i < M, the columns < N
//     init m[i] = -inf
//     for j < N reduce                  a reduction of the row
//       update m[i] max X[i, j]
//   for i < M, j < N map                an element of the row, from elements of the same column and
//     store E[i, j] = exp(X[i, j] - m[i])    numbers of the same row
//   for i < M map                       a number of the row
//     store s[i] = 2.0 * m[i]
//
// Reductions over several axes walk over the columns of each point of the others (`outer`); a group
// of them has numbers and reductions only.
//
// A piece of a longer row is a row, too (choose/steps/piece_stages.h): its columns are read at a
// place that moves with the number of the piece, and those that the row does not have add nothing:
//
//   for i < M, p < P map
//     init m[i, p] = -inf
//     for k < 4096 reduce
//       update m[i, p] max where(p*4096 + k < N, X[i, p*4096 + k], -inf)
//
// Such a group reads its data once if a row is kept, so its time is that of the memory traffic.
// A contraction is none of these: it reads every element many times, which shows in that no tensor
// it reads has all of its axes.
#pragma once

#include <optional>
#include <vector>

#include "expr/bounds/bounds.h"
#include "lower/points/points_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

struct RowStatement {
  enum class Kind : uint8_t { Number, Reduction, Element };
  Kind kind = Kind::Number;
  ir::Name target;
  expr::DType dtype = expr::DType::F32;
  expr::Expr value;  // in the group's axes; reads of the group's own buffers stand in it
  expr::Reducer reducer = expr::Reducer::Sum;
  expr::Expr init;  // of a reduction
};

struct RowGroup {
  const target::Target* target = nullptr;
  ir::Axes rows;
  ir::Axis column;
  ir::Axes outer;  // that reductions reduce with the columns: a row is walked over for each point
  std::vector<RowStatement> statements;
  size_t nests = 0;  // how many of the list it takes
  // Of pieces: where a column lies in the row that is read, and the condition that it is there, if
  // not all are. The columns themselves otherwise.
  expr::Expr place;
  expr::Expr exists;
};

// The group that begins with the first of `nests`, as long as can be; empty if there is none that
// register tiles can compute. It has a reduction.
std::optional<RowGroup> row_group(std::span<const MapNest> nests, const target::Target& target,
                                  expr::ExprPool& pool);
// The same for nests that only map elements.
std::optional<RowGroup> element_group(std::span<const MapNest> nests, const target::Target& target,
                                      expr::ExprPool& pool);

// Whether register tiles compute the expression as the language defines it: in f32, with indices
// that fit 32 bits.
bool is_tile_value(expr::Expr e);

}  // namespace nautilus::lower

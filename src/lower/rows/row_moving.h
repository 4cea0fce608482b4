// SPDX-License-Identifier: Apache-2.0
// Sums of a row whose terms are taken against a number of the same row, in the walk that finds the
// number: the mean and the sum of squares about it are one walk over memory instead of two.
//
//   m = s / n,  q = sum (x - m)^2          after each step of the walk: r1 = mean of what was seen
//                                          q = q + d*q1 + d*d/2*q2,    d = r1 - r,  q1 = q1 + d*q2
//                                          q = q + sum (x - r1)^2,     q1 = q1 + sum -2*(x - r1)
//
// The terms must be polynomials of the number (algebra/moments.h); every sum stays relative to a
// reference near the final one, so nothing cancels. Exactness class: exact over the reals.
// Exponentials of extremes follow otherwise (row_scaled.h).
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "algebra/moments.h"
#include "lower/rows/row_group.h"
#include "lower/rows/row_scaled.h"

namespace nautilus::lower {

struct RowMovingSum {
  size_t statement = 0;                // of the group
  std::vector<expr::Expr> references;  // of reductions of the walk, with numbers written out
  std::vector<expr::Expr> symbols;     // stand for them in the terms
  std::vector<algebra::Moment> moments;
};

// Statements of a group from `begin` to `end` that share a walk. Numbers among them are computed
// before it if they need none of its reductions, else after it; elements that need some are
// computed where they are read.
struct RowSegment {
  size_t begin = 0;
  size_t end = 0;
  std::vector<RowMovingSum> moving;  // in the order of their statements
  std::vector<RowScaledSum> scaled;  // the same
  std::set<size_t> early;            // numbers that need no reduction of the walk

  const RowMovingSum* find_moving(size_t statement) const;
  const RowScaledSum* find_scaled(size_t statement) const;
  // Whether the walk folds the terms of the reduction as they are.
  bool is_plain(size_t statement) const;
};

struct RowSegmentRules {
  // Whether the walk may take the sum along.
  std::function<bool(const RowStatement&)> may_move;
  // Whether the statement's elements are written.
  std::function<bool(const RowStatement&)> is_kept;
};

// The walk that begins with the statement, a reduction or an element: with what needs no number of
// it, and with sums that may move.
RowSegment row_segment(const RowGroup& group, size_t begin, const RowSegmentRules& rules,
                       expr::ExprPool& pool);

// Whether the moment's term is the same for all elements of the row.
bool is_same_everywhere(expr::Expr term, const RowGroup& group, expr::ExprPool& pool);

}  // namespace nautilus::lower

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
#pragma once

#include <functional>
#include <vector>

#include "algebra/moments.h"
#include "lower/rows/row_group.h"

namespace nautilus::lower {

struct RowMovingSum {
  size_t statement = 0;                // of the group
  std::vector<expr::Expr> references;  // of reductions of the walk, with numbers written out
  std::vector<expr::Expr> symbols;     // stand for them in the terms
  std::vector<algebra::Moment> moments;
};

// Statements of a group from `begin` to `end` that share a walk. Numbers among them are computed
// after it.
struct RowSegment {
  size_t begin = 0;
  size_t end = 0;
  std::vector<RowMovingSum> moving;  // in the order of their statements

  const RowMovingSum* find(size_t statement) const;
};

// Whether the walk may take the sum along.
using MayMove = std::function<bool(const RowStatement&)>;

// The walk that begins with the statement, a reduction or an element: with what needs no number of
// it, and with sums that may move.
RowSegment row_segment(const RowGroup& group, size_t begin, const MayMove& may_move,
                       expr::ExprPool& pool);

// Whether the moment's term is the same for all elements of the row.
bool is_same_everywhere(expr::Expr term, const RowGroup& group, expr::ExprPool& pool);

}  // namespace nautilus::lower

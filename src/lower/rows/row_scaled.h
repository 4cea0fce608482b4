// SPDX-License-Identifier: Apache-2.0
// Sums of a row whose terms are exponentials relative to an extreme of the same row, in the walk
// that finds the extreme:
//
//   m = max x,  s = sum exp(x - m)       each thread, after the maximum m1 of a step's elements:
//                                        s = s * exp(m - m1) + sum exp(x - m1)
//                                        at the end, with the row's maximum: s * exp(m - max m)
//
// The terms must be one factor of the extreme times what does not depend on it
// (algebra/separate.h), and 0 where what the extreme is taken of has no value yet
// (algebra/vanishing.h). Exactness class: exact over the reals.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "algebra/separate.h"
#include "lower/rows/row_group.h"

namespace nautilus::lower {

struct RowScaledSum {
  // An extreme of the walk that the terms read.
  struct Extreme {
    expr::Expr read;   // as the terms read it
    expr::Expr terms;  // that it is the extreme of
    expr::Reducer reducer = expr::Reducer::Max;
    double identity() const;
  };

  size_t statement = 0;  // of the group
  std::vector<Extreme> extremes;
  expr::Expr term;              // against extremes that are 0 where there is no number yet
  algebra::RunningPart moving;  // the factor of the term
  algebra::RunningPart last;    // the factor of the definition
};

// The statement's sum as such a sum; `term`: its terms with all that depends on the extremes
// written out. Nothing if it is none.
std::optional<RowScaledSum> row_scaled_sum(const RowGroup& group, size_t statement, expr::Expr term,
                                           std::vector<RowScaledSum::Extreme> extremes,
                                           expr::ExprPool& pool);

}  // namespace nautilus::lower

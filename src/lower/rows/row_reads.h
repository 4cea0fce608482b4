// SPDX-License-Identifier: Apache-2.0
// Which reads of values become tiles of the row: consecutive columns, and inside the tensor
// wherever they are evaluated. A read under a condition may be outside, unless it is proved not to
// be.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "lower/rows/row_values.h"

namespace nautilus::lower {

class RowReads {
 public:
  RowReads(const RowScope& scope, const RowValues& values) : scope_(scope), values_(values) {}

  // Those of a value, with the elements that it computes again.
  void add(expr::Expr value) { collect(value, true); }
  // In order of their first use.
  const std::vector<expr::Expr>& all() const { return reads_; }

 private:
  struct Order {
    bool operator()(const std::pair<expr::Expr, bool>& a,
                    const std::pair<expr::Expr, bool>& b) const {
      return std::make_pair(a.first.node(), a.second) < std::make_pair(b.first.node(), b.second);
    }
  };

  // `is_always`: no condition decides whether the value is evaluated.
  void collect(expr::Expr e, bool is_always);
  bool is_inside(expr::Expr read) const;

  const RowScope& scope_;
  const RowValues& values_;
  std::vector<expr::Expr> reads_;
  std::set<std::pair<expr::Expr, bool>, Order> visited_;
};

}  // namespace nautilus::lower

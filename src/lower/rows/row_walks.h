// SPDX-License-Identifier: Apache-2.0
// How often a kernel along rows reads its tensors if it walks over its rows instead of holding
// them: softmax reads a row for the maximum and the sum, and again for the elements.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lower/rows/row_group.h"

namespace nautilus::lower {

struct RowWalks {
  struct Reading {
    int64_t times = 0;
    int64_t bytes = 0;         // of a column of a row; 0 if all rows have the same
    bool is_computed = false;  // by the group itself
  };
  std::map<std::string, Reading> tensors;  // that are read
  int64_t walks = 0;
  int64_t written = 0;  // bytes of a column

  // Bytes of a column that a kernel moves which holds its rows, and one which walks over them.
  int64_t held_bytes() const;
  int64_t walked_bytes() const;
};

// `kept`: buffers that are written to memory.
RowWalks row_walks(const RowGroup& group, const std::set<std::string>& kept, expr::ExprPool& pool);

}  // namespace nautilus::lower

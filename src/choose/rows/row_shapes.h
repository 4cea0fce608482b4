// SPDX-License-Identifier: Apache-2.0
// The alternatives of a row kernel, by the number of columns, and what each of them holds in
// registers. The first is for any number of columns and tensors of any alignment; the others are
// for whole vectors, the shortest rows first:
//
//   steps of 1024, one element at a time
//   rows of up to 64, vectors of 8, by lanes of a warp (short_rows.h)
//   rows of up to 1024, vectors of 8
//   rows of up to 4096, vectors of 8
//   steps of 2048, vectors of 8
#pragma once

#include "lower/rows/row_shapes.h"

namespace nautilus::choose {

// About how many rows there are, and how many elements reductions over several axes walk over.
struct RowSizes {
  double rows;
  double walked;
  bool may_be_short;  // by hints, or by their absence
};

std::vector<lower::RowShape> row_shapes(const lower::RowContext& context, const RowSizes& sizes);

}  // namespace nautilus::choose

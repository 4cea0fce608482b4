// SPDX-License-Identifier: Apache-2.0
// Short rows: a few lanes of a warp hold one, and a CTA has many. A CTA for a row of 64 columns
// leaves most of its threads idle and has all of them wait at barriers; lanes only exchange
// numbers.
//
//   rows of up to 64, vectors of 4, by 8 lanes: a lane has 2 vectors, a CTA of 128 threads 16 rows
//   rows of 65, one element at a time, by 16 lanes
//
// Tests: test/schedule/short_rows.naut, test/kernels/short_rows.naut
#pragma once

#include <optional>

#include "lower/rows/row_shapes.h"

namespace nautilus::choose {

// Lanes of a warp for rows of so many columns, loaded by vectors of `by`: a power of two.
int64_t lanes_of_row(int64_t columns, int64_t by, const target::Target& target);

// The columns that so many lanes hold then: at least those of the row.
int64_t columns_of_lanes(int64_t columns, int64_t lanes, int64_t by);

// Neighbours that a lane loads at once, as far as the number of columns says.
int64_t vector_of_row(int64_t columns, const target::Rows& rows);

// Whether lanes can share rows of the group that are so short, whatever they have of registers.
// Pieces of longer rows and windows, which are rows for `row_group`, are not.
bool may_be_short(const lower::RowGroup& group, double columns);

// The shape that holds rows of up to so many columns; nothing if they are not short, or if a lane
// has no registers for them.
std::optional<lower::RowShape> short_row(const lower::RowContext& context, int64_t columns,
                                         int64_t by);

}  // namespace nautilus::choose

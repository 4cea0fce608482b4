// SPDX-License-Identifier: Apache-2.0
// Work along rows (row_group.h) as kernels in which one CTA has one row:
//
//   kernel Y_rows_4096                            N <= 4096 and N a multiple of 8
//     tiles T < M static
//     role compute groups 1 regs 64
//       tile X_row : bf16[4096] line by 8
//       tile Y_max : f32[] line
//       each i in T
//         load X_row[j < 4096] from X[i, j] when j < N else -inf
//         fold Y_max[] = max[j < 4096] f32(X_row[j])
//         lanes Y_max max
//         warps Y_max max
//         ...
//         put j < 4096 : Y[i, j] = ... when j < N
//   launch Y_rows_4096 grid where(N <= 4096 and N % 8 == 0, M, 0)
//
// Rows of more than 4096 columns are shared by four groups: `groups 4 index w`, columns 4096 * w +
// j, and `groups Y_max max` after each reduction.
//
// A row is kept in registers if it fits; the alternatives for longer rows, and for those that do
// not consist of whole vectors, walk over the columns once for each reduction and read them again.
// The plan launches the one that fits the sizes. Tests: test/lower/rows.naut,
// test/kernels/rows.naut, test/lower/rows_of_groups.naut, test/kernels/rows_of_groups.naut
//
// Each kernel is an alternative of the schedule, with lines of its own (row_lines.h).
#pragma once

#include "ir/pass.h"
#include "lower/rows/row_shapes.h"

namespace nautilus::lower {

// `alternatives`: the lines of each kernel; without them the kernels are chosen by rule. `members`:
// what is noted with the first of them. Nothing if a line is refused.
std::optional<ir::Block> lower_rows(const RowContext& rows,
                                    const std::vector<ir::Block>& alternatives,
                                    const ir::Block& members, ir::PassContext& context);

}  // namespace nautilus::lower

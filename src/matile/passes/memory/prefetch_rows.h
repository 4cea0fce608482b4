// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/pass.h"
#include "matile/ops.h"
#include "target/target.h"

namespace nautilus::matile {

// A CTA that loads a row also asks the second-level cache for a row that a later one will load.
//
//   each i in rows                           each i in rows
//     load x[j < 4096] from X[i, j]    ->      prefetch X[i + 8 * sms, 0] count N when i + 8 * sms
//     < M
//       when j < N else 0.0                    load x[j < 4096] from X[i, j] when j < N else 0.0
//
// Why: a CTA that reduces or writes has no loads in flight, and CTAs that began together do so at
// the same time; asking ahead keeps the memory busy meanwhile (softmax of 4096 columns of 16 bits:
// 0.080 to 0.070 ms). The distance is 64 KiB of rows for each multiprocessor: data of closer rows
// is still in flight when it is loaded, and further rows leave the cache again. Rows of more than
// 16 KiB gain where the cache is empty before and lose where results of an earlier kernel are still
// written back from it, so they are not prefetched (docs/row_kernels.md); where several groups
// share a row (`X[i, 4096 * w + j]`) the first asks for the whole row, up to 32 KiB.
//
// A line `ahead` says otherwise (decision/decisions.h).
//
// For kernels without loading roles with tiles that are rows, loaded at once. Test:
// test/matile/passes/prefetch_rows.matile.
std::optional<ir::Program> prefetch_rows(const ir::Program& program, ir::PassContext& context);

// How many rows ahead, times multiprocessors, the kernel asks by rule; nothing if it loads no rows
// at once.
std::optional<int64_t> usual_rows_ahead(const Kernel& kernel, const target::Rows& rows,
                                        expr::ExprPool& pool);

}  // namespace nautilus::matile

// SPDX-License-Identifier: Apache-2.0
// The position of an extreme of computed values, as reductions that one kernel rolls together.
//
//   for i < M map                                     for i < M map
//     init a[i] = -1                                    init a.best[i] = -inf
//     init a.best[i] = -inf                             for j < N reduce
//     for j < N reduce                      becomes       update a.best[i] max S[i, j]
//       update_arg a[i] best a.best                   for i < M map
//         argmax S[i, j] at j                           init a.near[i] = inf
//                                                       for j < N reduce
//                                                         update a.near[i] min
//                                                           where(S[i, j] == a.best[i],
//                                                                 f32(j / 4096), inf)
//                                                     ... and a.rest, the least j % 4096
//                                                     among those
//                                                     for i < M map
//                                                       store a[i] = where(a.near[i] == inf, -1,
//                                                         i64(a.near[i]) * 4096 + i64(a.rest[i]))
//
// The position is two numbers, because an f32 counts only to 2^24; an axis known to be shorter
// needs one. The values are compared with their own extreme, so one kernel must compute everything:
// values that are computed again may differ in their last bits. Exactness class: exact. Test:
// test/schedule/argmax.naut
#pragma once

#include "schedule/apply/kernel.h"

namespace nautilus::schedule {

// Targets of argmax and argmin that can be rewritten in this way.
std::vector<std::string> positions(const ir::Program& program, expr::ExprPool& pool);

Outcome<ir::Program> locate(const ir::Program& program, std::string_view target,
                            expr::ExprPool& pool);

// Whether one kernel has all statements that `locate` made for the target.
bool is_located_in_one_kernel(const ir::Program& program, std::string_view target,
                              const std::vector<Kernel>& kernels);

}  // namespace nautilus::schedule

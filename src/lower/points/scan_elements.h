// SPDX-License-Identifier: Apache-2.0
// Elements that need what a scan gives at their own point are a statement of its steps:
//
//   loop t from 0 up T                          loop t from 0 up T
//     for i < N map                               for i < N map
//       store S[i, t] =                             store S[i, t] =
//         where(t >= 1, S[i, t - 1], 0.0)             where(t >= 1, S[i, t - 1], 0.0)
//           + f32(X[i, t])             becomes          + f32(X[i, t])
//   for i < N, t < T map                          for i < N map
//     store A[i, t] = bf16(S[i, t])                 store A[i, t] = bf16(S[i, t])
//
// so that the states of all steps need not pass through memory. The scan has one equation.
// Tests: test/lower/scan_elements.naut
#pragma once

#include "lower/points/points_kernel.h"

namespace nautilus::lower {

// Whether `next` is such elements, of the scan `first`. `written`: by the nests before it in the
// kernel, of which it reads only what the scan gives.
bool can_follow(const MapNest& first, const MapNest& next, const std::set<std::string>& written,
                expr::ExprPool& pool);

// The scan that begins the list, with the elements behind it.
MapNest with_elements(const std::vector<MapNest>& nests, expr::ExprPool& pool);

}  // namespace nautilus::lower

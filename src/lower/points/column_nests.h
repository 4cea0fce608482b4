// SPDX-License-Identifier: Apache-2.0
// Work along an axis that does not lie along memory, as nests that share their points: a thread
// for each point of the other axes walks along it, as often as there are reductions that need each
// other, and writes elements in a walk of their own.
//
//   for n < B, v < W map                     for n < B, v < W map
//     init m[n, v] = -inf                      init m[n, v] = -inf
//     for c < C reduce                         for c < C reduce
//       update m[n, v] max x[n, c, v]            update m[n, v] max x[n, c, v]
//   for n < B, c < C, v < W map      ->
//     store e[n, c, v] = exp(x[n, c, v] - m[n, v])
//   for n < B, v < W map                     for n < B, v < W map
//     init s[n, v] = 0.0                       init s[n, v] = 0.0
//     for c < C reduce                         for c < C reduce
//       update s[n, v] sum e[n, c, v]            update s[n, v] sum exp(x[n, c, v] - m[n, v])
//   for n < B, c < C, v < W map              for n < B, v < W map
//     store y[n, c, v] =                       for c < C reduce
//       e[n, c, v] / s[n, v]                     store y[n, c, v] = exp(..) / s[n, v]
//
// Elements that nobody reads afterwards are computed where they are needed. Neighbouring threads
// read neighbouring elements, so every walk is along memory for a warp; an axis that lies along
// memory itself is for rows (row_group.h). Tests: test/kernels/column_walks.naut
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lower/points/points_kernel.h"

namespace nautilus::lower {

// The nests that share their points, for all of `nests`; nothing if they are not such work.
// `kept`: what is read after them. An element whose expression has more nodes than `limits` allow
// is not computed where it is needed.
std::optional<std::vector<MapNest>> column_nests(std::span<const MapNest> nests,
                                                 const std::set<std::string>& kept,
                                                 const target::Points& limits,
                                                 expr::ExprPool& pool);

}  // namespace nautilus::lower

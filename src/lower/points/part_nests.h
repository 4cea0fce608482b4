// SPDX-License-Identifier: Apache-2.0
// What follows the parts of a split axis, as one kernel of scalar code.
//
//   for i < M map                                   points i < M, e < 64
//     init m[i] = -inf                                value m_acc : f32 = -inf
//     for s < parts reduce                            loop s from 0 up parts
//       update m[i] max m.parts[s, i]       becomes     assign m_acc = max(m_acc, m.parts[s, i])
//   for i < M, e < 64 map                             value u_acc : f32 = 0.0
//     init u[i, e] = 0.0                              loop s from 0 up parts
//     for s < parts reduce                              assign u_acc = u_acc + u.parts[s, i, e] *
//     ...
//       update u[i, e] sum u.parts[s, i, e] * ...     write u[i, e] = u_acc
//
// There are few parts, so every point of the longer nest combines those of the shorter one again
// instead of waiting for another kernel. Tests: test/lower/part_nests.scalar
#pragma once

#include <set>
#include <string>
#include <unordered_set>

#include "lower/points/points_kernel.h"

namespace nautilus::lower {

// Whether the nest reduces over extents of `computed` sizes: parts that a schedule made.
bool is_over_parts(const MapNest& nest, const std::unordered_set<expr::Expr>& computed);

// The end of the nests from `begin` on that become one kernel; `begin` is over parts. Nests before
// `least` need not read what the others write.
size_t part_nests_end(const std::vector<MapNest>& nests, size_t begin,
                      const std::unordered_set<expr::Expr>& computed, expr::ExprPool& pool,
                      size_t least = 0);

// The nests behind grid nest `grid`, whose last tile puts its parts together, that it may take: up
// to `end`, and at least up to `least`, so that all that read parts are among them. `least` is
// `grid` if none does.
struct LastTileNests {
  size_t least = 0;
  size_t end = 0;
};
LastTileNests last_tile_nests(const std::vector<MapNest>& nests, size_t grid,
                              const std::set<std::string>& locals,
                              const std::unordered_set<expr::Expr>& computed, expr::ExprPool& pool);

}  // namespace nautilus::lower

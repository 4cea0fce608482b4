// SPDX-License-Identifier: Apache-2.0
// A sum whose terms are 0 but for one place of an axis, as a walk over the terms:
//
//   for v < V, e < E map                           for v < V, e < E map
//     init G[v, e] = 0.0                             store G[v, e] = 0.0
//     for t < T reduce                      becomes
//       update G[v, e] sum                         for t < T, e < E map
//         where(tok[t] == v, dY[t, e], 0.0)          scatter G[tok[t], e] sum dY[t, e]
//                                                      when tok[t] >= 0 and tok[t] < V
//
// T * E terms instead of V * T * E. Also with maxima, minima, `any` and `all`, whose other terms
// are their identities, with several such axes, and with further conditions. Terms meet in an
// element in any order, so a sum of floats is not the same in its last bits each time.
//
// Test: test/lower/scatter.scalar
#pragma once

#include <optional>

#include "lower/points/points_kernel.h"

namespace nautilus::lower {

struct ScatterNests {
  MapNest first;  // what every element begins with
  MapNest terms;  // its axes are those of the result that have no place, and the reduced ones
};

// Nothing for other nests, and where memory lacks the operation on these elements.
std::optional<ScatterNests> scatter_nests(const MapNest& nest,
                                          const std::map<std::string, ir::TensorType>& buffers,
                                          expr::ExprPool& pool);

}  // namespace nautilus::lower

// SPDX-License-Identifier: Apache-2.0
// Stores elements of a tile two at a time: accumulators have two neighbours of a row in consecutive
// registers.
//
//   bool is_whole = p.C_stride1 == 1 && is_pair(p.C, at);
//   UNROLL for (int reg = 0; reg < 64; ++reg) is_whole = is_whole && 0 <= limit0[reg];
//   if (is_whole) {
//     UNROLL for (int pair = 0; pair < 32; ++pair) store_pair_f32(p.C, .., c[2 * pair], c[2 * pair
//     + 1]);
//   } else {
//     .. one by one
//
// The kernel tests once whether a tile is entirely inside its tensor, with contiguous rows at an
// even address.
#pragma once

#include "emit/elementwise.h"

namespace nautilus::emit {

// False, and nothing written, if the put's registers do not form such pairs.
bool emit_put_pairs(const matile::Put& op, const matile::Domain& domain, const RegisterScope& scope,
                    Writer& out);

}  // namespace nautilus::emit

// SPDX-License-Identifier: Apache-2.0
// Elements that are asked for by small places in an order (`max[j rank r] x`, r < K) are looked for
// in pieces of their axis first: what K others of its piece come before is not among them.
//
//   let P[i < M, j < N] : i32 =
//       sum[k < N] where(X[i, k] > X[i, j] or X[i, k] == X[i, j] and k < j, i32(1), i32(0))
//   let V[i < M, r < 8] : f32 =
//       max[j < N] where(i64(P[i, j]) == r and X[i, j] == X[i, j], X[i, j], -inf)
// becomes
//   let P.piece[i, b < (N + 63) / 64, l < 64] : i32 = the count among the elements of piece b
//   let P.kept[i, b < (N + 63) / 64, q < 8] : i64 =
//       max[l < 64 from -1] where(i64(P.piece[i, b, l]) == q and .., b * 64 + l, -1)
//   let P.at[i, c < (N + 63) / 64 * 8] : i64 = P.kept[i, c / 8, c % 8]
//   let P.of[i, c < ..] : f32 = where(P.at[i, c] >= 0, X[i, P.at[i, c]], NaN)
//   let P.last[i, c < ..] : i32 = the count among the kept elements P.of, in the order of c
//   let V[i < M, r < 8] : f32 =
//       max[c < ..] where(P.at[i, c] >= 0 and (i64(P.last[i, c]) == r and ..), P.of[i, c], -inf)
//
// Why: counting compares each element with all others. In pieces of 64 it is 64 comparisons an
// element, and what is left is an eighth of the axis, for which the same holds.
//
// The order of kept elements is that of the axis, so equal ones keep their order. For counts that
// only reductions read which choose one place, below a number that is known when compiling. Needs
// reductions in equations of their own. Exactness class: exact. Test: test/spec/rank_pieces.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> rank_pieces(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

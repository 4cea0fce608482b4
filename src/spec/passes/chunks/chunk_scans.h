// SPDX-License-Identifier: Apache-2.0
// Scans with a matrix as state are computed in chunks of their steps, by products of matrices.
//
//   state S : f32[T, D, E] along 0
//   let S[t < T, d < D, e < E] : f32 =
//     a[t] * where(t >= 1, S[t - 1, d, e], 0.0) + f32(K[t, d]) * f32(V[t, e])
//   let O[t < T, e < E] : f32 = sum[d < D] f32(Q[t, d]) * S[t, d, e]
// becomes, with decay(j, i] the product of a over the steps of a chunk after j up to i,
//   let S.chunks[c, d, e] = sum[j < 64] K[c * 64 + j, d] * decay(j, end] * V[c * 64 + j, e]
//   state S.states along 0
//   let S.states[c, d, e] = decay(chunk] * S.states[c - 1, d, e] + S.chunks[c, d, e]
//   let O.scores[c, i, j] = sum[d < D] Q[c * 64 + i, d] * K[c * 64 + j, d]
//   let O.chunks[c, i, e] =
//     (sum[j < 64] where(j <= i, O.scores[c, i, j] * decay(j, i], 0.0) * V[c * 64 + j, e])
//     + decay(start, i] * (sum[d < D] Q[c * 64 + i, d] * S.states[c - 1, d, e])
//   let O[t, e] = O.chunks[t / 64, t % 64, e]
//
// The decay has none of the axes that only one side of the term has. All readers of the state sum
// over the axis of one side (at t, or at t - 1), or read the last state. Decays are exponentials of
// sums of logarithms within a chunk, with separate signs and without quotients, so that zeros and
// ones are exact. Only where a factor is stored in 16 bits, because operands of the products are
// rounded to 16 bits. Needs reductions in equations of their own. Exactness class: tolerance. Test:
// test/spec/chunk_scans.spec
#pragma once

#include <string>
#include <vector>

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> chunk_scans(const ir::Program& program, ir::PassContext& context);

// Why scans of the program stay sequential, one sentence each. Needs reductions in equations of
// their own.
std::vector<std::string> chunk_refusals(const ir::Program& program, expr::ExprPool& pool);

}  // namespace nautilus::spec

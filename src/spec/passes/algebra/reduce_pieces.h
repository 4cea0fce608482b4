// SPDX-License-Identifier: Apache-2.0
// Reductions along an axis of a product are taken in pieces of the axis first, which are as long as
// a tile of the product is wide.
//
//   let C[i < M, j < N] : f32 = sum[k < K] f32(A[i, k]) * f32(B[j, k])
//   let Y[i < M] : f32 = max[j < N] C[i, j]
// becomes
//   let C.pieces[i < M, j.piece < (N + 127) / 128, j.at < 128] : f32 =
//       sum[k < K] f32(A[i, k]) * where(j.piece * 128 + j.at < N, f32(B[j.piece * 128 + j.at, k]),
//       0)
//   let Y.pieces[i < M, j.piece < (N + 127) / 128] : f32 =
//       max[j.at < 128] where(j.piece * 128 + j.at < N, C.pieces[i, j.piece, j.at], -inf)
//   let Y[i < M] : f32 = max[j.piece < (N + 127) / 128] Y.pieces[i, j.piece]
//
// Why: the kernel of the product has a piece of a row in its registers. The product passes through
// memory otherwise, twice and in f32.
//
// For a product whose readers, and readers of floats that are computed of it, are such reductions
// (sum, max, min) and nothing else; none of them needs what another one gives. Axes of one operand
// alone that are read as they stand; no short axis, which a tile holds anyway, and no short depth,
// with which kernels walk along the axis. Needs reductions in equations of their own. Exactness
// class: exact over the reals. Test: test/spec/reduce_pieces.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> reduce_pieces(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

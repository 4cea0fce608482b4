// SPDX-License-Identifier: Apache-2.0
// Products with differences from a value of the row: the difference leaves the product.
//
//   let m[i < M] : f32 = s[i] / f32(K)                                (s: a sum over k < K)
//   let Y[i < M, n < N] : f32 = sum[k < K] (f32(X[i, k]) - m[i]) * f32(W[k, n])
// becomes
//   let Y.all[n < N] : f32 = sum[k < K] f32(W[k, n])
//   let Y.acc[i < M, n < N] : f32 = sum[k < K] f32(X[i, k]) * f32(W[k, n])
//   let Y[i < M, n < N] : f32 = Y.acc[i, n] - m[i] * Y.all[n]
//
// So the product no longer waits for the reduction that gives m, and one pass over X does both. In
// general an operand is a sum of terms (value of the row) * (value along k, without the row), one
// of which varies along both. The sums of the others have no row: they are small, and need no
// product in every tile.
//
// What is subtracted behind the loop must not be larger than what it is subtracted from. An element
// of 16 bits enters the product as it is, and sums of f32 have the bits to spare. An operand that
// is computed is rounded for the product, relative to its distance from 0. It is taken relative to
// a value of its own row instead, the median of three of its elements, which one outlier does not
// move: (X[i, k] - Y.at[i]) * g[k]; the sum then needs (m[i] - Y.at[i]) * Y.all[n] only.
//
// Only where a term waits for a reduction over the axis. Stay: operands with two terms that vary
// (each would be a product), values of rows that may be infinite, computed operands that are not
// made of inputs alone. Needs reductions in equations of their own. Exactness class: exact over the
// reals. Test: test/spec/distribute_row_shift.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> distribute_row_shift(const ir::Program& program,
                                                ir::PassContext& context);

}  // namespace nautilus::spec

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
// So the product no longer needs the reduction that gives m, and one pass over X computes both. In
// general an operand is a sum of terms (value of the row) * (value along k, without the row), one
// of which varies along both. The sums of the others have no row: they are small, and need no
// product in every tile.
//
// The value subtracted after the loop must not be larger than the value it is subtracted from. An
// element of 16 bits enters the product unrounded, and sums of f32 have enough bits. A computed
// operand is rounded for the product, relative to its distance from 0. So its distance from a value
// of its own row is used instead, the median of three of its elements, which one outlier does not
// move: (X[i, k] - Y.at[i]) * g[k]; the sum then needs (m[i] - Y.at[i]) * Y.all[n] only.
//
// Only where a term needs a reduction over the axis. Unchanged: operands with two terms that vary
// (each would be a product), values of rows that may be infinite, computed operands that read more
// than inputs. Needs reductions in equations of their own. Exactness class: exact over the reals.
// Test: test/spec/distribute_row_shift.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> distribute_row_shift(const ir::Program& program,
                                                ir::PassContext& context);

}  // namespace nautilus::spec

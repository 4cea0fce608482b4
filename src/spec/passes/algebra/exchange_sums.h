// SPDX-License-Identifier: Apache-2.0
// A sum of sums of products begins with the sum whose terms have fewer axes.
//
//   let Z[i < M, j < N] : f32 = sum[k < K] X[i, k] * W[j, k]
//   let Y[i < M] : f32 = sum[j < N] (Z[i, j] + b[j]) / c[i]
// becomes
//   let Y.sums[k < K] : f32 = sum[j < N] W[j, k]
//   let Y[i < M] : f32 = (sum[k < K] X[i, k] * Y.sums[k]) / c[i] + (sum[j < N] b[j]) / c[i]
//
// Why: a product of matrices of which only a sum is needed is a product with a vector. Looks
// through element-wise equations, differences, factors and divisors, but not through functions.
//
// For products that nothing else reads, no element twice, whose new sums all have fewer axes than
// the product, and whose first sums are no larger than the tensors that they read. These sums must
// be inside their tensors also where other axes are empty, and what they are weighted with finite.
// A product with a 16-bit operand stays if the rest of it would be a product of matrices: the first
// sums would be rounded then.
// Exactness class: exact over the reals. Test: test/spec/exchange_sums.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> exchange_sums(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// A term that every element of a row adds leaves the row's maximum (or minimum), and disappears
// where the maximum is subtracted again.
//
//   let T[i < M, j < N] : f32 = where(j <= i, S[i, j] + c[i], -inf)      c: a sum
//   let m[i < M] : f32 = max[j < N] T[i, j]
//   let E[i < M, j < N] : f32 = exp(T[i, j] - where(m[i] == -inf, 0.0, m[i]))
//   let L[i < M] : f32 = m[i] + log(l[i])
// becomes
//   let T[i < M, j < N] : f32 = where(j <= i, S[i, j], -inf)
//   let m[i < M] : f32 = max[j < N] T[i, j]
//   let E[i < M, j < N] : f32 = exp(T[i, j] - where(m[i] == -inf, 0.0, m[i]))
//   let L[i < M] : f32 = m[i] + c[i] + log(l[i])
//
// A term is followed from the equation that adds it to all readers: through sums, selects of +-inf,
// products, maxima and minima, positions of extremes, comparisons with +-inf and with values that
// have the same term. Where it remains, it is added back, which is allowed in equations with fewer
// axes than the one it came from; otherwise the term is not moved. Terms must be finite (an
// unchanged input may be a mask if the program tests for -inf), and a guard may remove a term only
// from -inf. Exactness class: exact over the reals. Test: test/spec/drop_row_constant.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> drop_row_constant(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

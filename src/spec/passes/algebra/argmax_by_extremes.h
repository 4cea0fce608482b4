// SPDX-License-Identifier: Apache-2.0
// The position of an extreme element of a row becomes reductions that row kernels compute while
// they read the row once: the extreme, and its least position.
//
//   let a[i < M] : i64 = argmax[j < N] X[i, j]
// becomes
//   let a.best[i < M] : f32 = max[j < N] X[i, j]
//   let a.near[i < M] : f32 = min[j < N] where(X[i, j] == a.best[i], f32(j / 4096), inf)
//   let a.rest[i < M] : f32 = min[j < N] where(where(X[i, j] == a.best[i], f32(j / 4096), inf) ==
//                                              a.near[i], f32(j % 4096), inf)
//   let a[i < M] : i64 = where(a.near[i] == inf, -1, i64(a.near[i]) * 4096 + i64(a.rest[i]))
//
// The position is two numbers, because an f32 counts only to 2^24; a row known to be shorter needs
// one. The element must be an input's, possibly under a condition on integers: a computed value may
// differ in its last bits when it is computed again. An existing equation of the extreme is used.
// Short rows stay unchanged: one thread reads them. Needs reductions in equations of their own.
// Exactness class: exact. Test: test/spec/argmax_by_extremes.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> argmax_by_extremes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// The position of an extreme element of a row becomes reductions that kernels along rows compute in
// one reading of it: the extreme, and the least position at which it stands.
//
//   let at[i < M] : i64 = argmax[j < N] X[i, j]
// becomes
//   let at.best[i < M] : f32 = max[j < N] X[i, j]
//   let at.block[i < M] : f32 = min[j < N] where(X[i, j] == at.best[i], f32(j / 4096), inf)
//   let at.place[i < M] : f32 = min[j < N] where(X[i, j] == at.best[i] and
//                                                f32(j / 4096) == at.block[i], f32(j % 4096), inf)
//   let at[i < M] : i64 = where(at.block[i] == inf, -1, i64(at.block[i]) * 4096 + i64(at.place[i]))
//
// Two numbers, because an f32 counts to 2^24 only. The element must be an input's, possibly under a
// condition on integers: what is computed may have other bits when it is computed again. An
// equation that has the extreme already is used. Short rows stay: one thread reads them. Needs
// reductions in equations of their own. Exactness class: exact. Test:
// test/spec/argmax_by_extremes.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> argmax_by_extremes(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

// SPDX-License-Identifier: Apache-2.0
// Simplifies every expression of a program with the exact rules (expr/rules/rules.def) and the
// bounds of its axes:
//
//   let Y[i < M] : f32 = where(i < M and true, x[i + 0], 0.0)      becomes      let Y[i < M] : f32
//   = x[i]
//
// Test: test/spec/simplify.spec
#pragma once

#include "ir/pass.h"

namespace nautilus::spec {

std::optional<ir::Program> simplify(const ir::Program& program, ir::PassContext& context);

}  // namespace nautilus::spec

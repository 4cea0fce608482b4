// SPDX-License-Identifier: Apache-2.0
// Runs a VR-tile program: every tile becomes a local buffer of a scalar program, every op a loop
// nest over its elements, and the scalar interpreter runs that. The translation is the definition
// of what the ops mean.
#pragma once

#include "ir/environment.h"
#include "scalar/interp.h"
#include "vrtile/ops.h"

namespace nautilus::vrtile {

// The same computation at the scalar level.
ir::Program to_scalar(const ir::Program& program, expr::ExprPool& pool);

std::optional<std::map<std::string, expr::Tensor>> interpret(const ir::Program& program,
                                                             const ir::Environment& env,
                                                             scalar::Arithmetic arithmetic,
                                                             expr::ExprPool& pool,
                                                             diag::Sink& sink);

}  // namespace nautilus::vrtile

// SPDX-License-Identifier: Apache-2.0
// The machine that a program is for. Passes ask here for every number of a machine.
#pragma once

#include "ir/op.h"
#include "target/target.h"

namespace nautilus::ir {

// As declared (`target NAME`), else the default.
const target::Target& target_of(const Program& program);

// The program for this target: declared, where it is not the default.
Program with_target(Program program, const target::Target& target, expr::ExprPool& pool);

}  // namespace nautilus::ir

// SPDX-License-Identifier: Apache-2.0
// How long a program takes to evaluate, counted before it is.
//
// The definition computes what is written where it is written: a maximum inside of a sum once for
// each term. A softmax over two axes of a matrix takes the cube of its elements.
#pragma once

#include "driver/load/load.h"
#include "ir/environment.h"

namespace nautilus::fuzz {

// What the definition may take of a program, which a case evaluates ten times or more: 0.3 s.
inline constexpr double kMaxDefinitionWork = 2e7;

// Operations of the definition (level spec) or of the loops (level scalar) at these sizes, all of
// which are known (ir::compute_sizes).
double work_of(const ir::Program& program, const ir::Environment& sized);

// The same with the sizes given, the others at their hints; 0 where they contradict the program.
double work_at(const ir::Program& program, const ir::Environment& given);

}  // namespace nautilus::fuzz

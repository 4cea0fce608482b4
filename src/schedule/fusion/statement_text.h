// SPDX-License-Identifier: Apache-2.0
// The block graph: statements, their loops and what they need from each other, as scheduling sees
// them (statement.h), for people and tests.
//
//   s1 m : map i < M, reduce j < N max
//     reads T[i, j] from s0
#pragma once

#include <string>

#include "schedule/fusion/statement.h"

namespace nautilus::schedule {

// Of an unscheduled scalar program.
std::string block_graph(const ir::Program& program, expr::ExprPool& pool);

}  // namespace nautilus::schedule

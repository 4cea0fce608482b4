// SPDX-License-Identifier: Apache-2.0
// What kernels of scalar code are made of, whoever makes them: steps of reductions, and the kernel
// around a thread's work.
#pragma once

#include "lower/kernel/lowered_kernel.h"
#include "target/target.h"

namespace nautilus::lower {

// acc = acc <reducer> value
ir::Op combined(expr::Expr acc, expr::Reducer reducer, expr::Expr value, expr::ExprPool& pool);

// A value of a reduction that keeps the position of the best one.
struct Candidate {
  expr::Expr value;
  expr::Expr position;
  ir::Name name;  // for the value
};

// `at` and `best` take the position and the value if it is the first number that is not NaN, or
// beats the best so far.
void take_position(expr::Expr at, expr::Expr best, expr::Reducer reducer,
                   const Candidate& candidate, expr::ExprPool& pool, ir::Block& out);

// The kernel whose threads each do the body for a point of the axes; of one point if there are
// none. `own` are the kernel's names.
LoweredKernel kernel_of_points(ir::Name name, ir::Axes axes, ir::Block body, int64_t threads,
                               FreshNames& own, expr::ExprPool& pool);

// The kernel says how many threads it has where they are not the target's.
void set_threads(LoweredKernel& parts, int64_t threads, const target::Target& target);

// The kernel is launched where the condition holds.
void launch_where(LoweredKernel& kernel, expr::Expr condition, expr::ExprPool& pool);

// All of so many lanes have one point.
void set_lanes(LoweredKernel& parts, int64_t lanes);

}  // namespace nautilus::lower

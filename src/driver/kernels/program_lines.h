// SPDX-License-Identifier: Apache-2.0
// Lines of a schedule that are about the program, not about a kernel: those that describe what was
// chosen, the forms of the algebra that given ones may mean, and which of them are refused.
#pragma once

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

// Writes down what the schedule says about the program itself.
void describe(FirstSchedule& schedule, const ir::Program& program, Unit& unit);

// The part of it that is about rewrites of the equations: those that change something and that no
// line is about yet.
void add_algebra(FirstSchedule& schedule, const ir::Program& program, Unit& unit);
// The same for lines about operands, from what passes of equations noted: of tensors that no later
// pass made superfluous, and of those that a line keeps from being made. One that its kernel
// computes on the way lies nowhere.
void add_stored(const ir::Block& decided, FirstSchedule& schedule);

// The forms of the algebra that a schedule may mean: the one it names; any of them where it names
// none, the plainest first.
std::vector<Algebra> forms_for(const schedule::Schedule& decisions);

// Why lines are refused; empty if they are not. Here: of another program, or two about the same.
std::string refuse_program(const ir::Program& program, const schedule::Schedule& decisions);
// A line about a tensor that the program does not have in the end.
std::string refuse_unstored(const schedule::Schedule& decisions, const ir::Program& loops);
// A line about the order of a tensor that lies nowhere in the scheduled program.
std::string refuse_order(const schedule::Schedule& decisions, const ir::Program& scheduled);
// A rewrite that is asked for and finds nothing to do.
std::string refuse_idle(const schedule::Schedule& decisions, const Algebra& form,
                        const ir::Program& program, const ir::Program& lowered, Unit& unit);

}  // namespace nautilus::driver

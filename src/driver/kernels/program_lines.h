// SPDX-License-Identifier: Apache-2.0
// Lines of a schedule about the program instead of a kernel: lines for the choices that were made,
// the forms of the algebra that given lines may mean, and which lines are refused.
#pragma once

#include "driver/kernels/scheduling.h"

namespace nautilus::driver {

// The schedule with the names that the program has at the places of its own; with its own names if
// it does not know their places, or if it is for other equations.
schedule::Schedule with_names_of(const ir::Program& program, const schedule::Schedule& given,
                                 expr::ExprPool& pool);

// Why the line `names` is refused: the equations have no such place; empty if it is not.
std::string refuse_places(const ir::Program& program, const schedule::Schedule& given);

// Adds the schedule's lines about the program itself.
void describe(FirstSchedule& schedule, const ir::Program& program, Unit& unit);

// The lines about rewrites of the equations: for rewrites that change something and have no line
// yet.
void add_algebra(FirstSchedule& schedule, const ir::Program& program, Unit& unit);
// The same for lines about operands, from the notes of passes on equations: for tensors that no
// later pass removed, and for tensors that a line says not to store. The line of an operand that
// its kernel computes has no order.
void add_stored(const ir::Block& decided, FirstSchedule& schedule);

// The form with what the lines say about rewrites.
Algebra as_given(const schedule::Schedule& decisions, Algebra form);
// Adds lines for the rewrites in which the form is not what the lines say, or most programs have.
void add_forms(schedule::Schedule& decisions, const Algebra& form);

// The forms of the algebra that a schedule may mean: the one it names; any of them where it names
// none, the plainest first.
std::vector<Algebra> forms_for(const schedule::Schedule& decisions);

// Why lines are refused, or empty. This one: the lines are for another program, or two lines are
// about the same.
std::string refuse_program(const ir::Program& program, const schedule::Schedule& decisions);
// A line about a tensor that the final program does not have.
std::string refuse_unstored(const schedule::Schedule& decisions, const ir::Program& loops);
// A line about the order of a tensor that is never in memory in the scheduled program.
std::string refuse_order(const schedule::Schedule& decisions, const ir::Program& scheduled);
// A rewrite that a line asks for and that changes nothing.
std::string refuse_idle(const schedule::Schedule& decisions, const Algebra& form,
                        const ir::Program& program, const ir::Program& lowered, Unit& unit);

}  // namespace nautilus::driver

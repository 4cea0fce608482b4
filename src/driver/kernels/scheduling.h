// SPDX-License-Identifier: Apache-2.0
// From a program of the math language to its first schedule, or to a given one, and the check of
// its results.
#pragma once

#include "compile/manager.h"
#include "driver/oracle/ladder.h"
#include "schedule/apply/apply.h"
#include "schedule/choose/auto.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {

using compile::Algebra;

struct FirstSchedule {
  ir::Program unscheduled;  // after the algebra passes
  schedule::Schedule decisions;
  ir::Program program;
  std::vector<std::string> notes;
  std::vector<schedule::NestOrigin> nests;  // grid nests, in order
  std::vector<schedule::Kernel> kernels;
  ir::Program rounded;  // the program for which kernels were chosen: unscheduled, with its `round`
                        // decisions
  Algebra algebra = {};
  // If `complete` has made them: the kernels of the program (compile::nests_to_kernels), and the
  // decisions of passes.
  std::optional<ir::Program> made = {};
  ir::Block decided = {};
  // Of a schedule that was replayed: the tile kernels that its lines ask for, in place of
  // `kernels`, which were chosen.
  std::vector<schedule::Kernel> replayed = {};
};

// Every kernel of it has a form on the device: a kernel without one is tried with smaller tiles,
// and at last left out. Empty if something was reported.
std::optional<FirstSchedule> first_schedule(const ir::Program& program, Unit& unit);
// The form of the equations that the first schedule would have with the rewrites that `given` asks
// for. Nothing if there is no such form.
std::optional<Algebra> chosen_forms(const ir::Program& program, const schedule::Schedule& given,
                                    Unit& unit);
// Whether some reduction can be a walk over its terms (lower/places/scatter_nests.h).
bool may_scatter(const ir::Program& lowered, Unit& unit);
// The first schedule without checking that its kernels have a form, which is nearly always the
// same: for a caller that lowers them anyway.
std::optional<FirstSchedule> schedule_without_trial(const ir::Program& program, Unit& unit);
// For a program of loops that equations were lowered to; with or without trial.
FirstSchedule schedule_loops(const ir::Program& loops, bool is_tried, Unit& unit);
// With the decisions of a schedule's text. Tile kernels that the text does not name are those of
// the first schedule, unless a kernel of the text computes their statements. If the text has no
// lines about the program, those of the first schedule are used (replay_schedule.cc). A kernel that
// the program does not have is refused with the names of the existing ones.
std::optional<FirstSchedule> replay_schedule(const ir::Program& program, std::string_view text,
                                             Unit& unit, std::string* error);
// Adds the lines that passes choose by rule to the schedule, which then has all kernels in the
// order in which they run. Unchanged if a kernel is refused.
void complete(FirstSchedule& schedule, Unit& unit);
// The same from what passes noted while they made the kernels.
void complete(FirstSchedule& schedule, const ir::Block& decided);
// With only these decisions and these tile kernels.
std::optional<FirstSchedule> replay(const ir::Program& program, const schedule::Schedule& decisions,
                                    Unit& unit, std::string* error);
// The program with the schedule's lines about operands, which passes of equations read.
ir::Program with_operand_lines(const ir::Program& program, const schedule::Schedule& decisions);
// Why the passes refuse a line of the schedule, or have no kernel for it; empty if neither.
std::string refused_lines(const FirstSchedule& schedule, Unit& unit);

// Changes of the first schedule.
struct ScheduleEdit {
  std::string parts;    // of every streamed axis: a number or `fill`; empty: as the schedule says
  std::string combine;  // where parts are combined: `kernel` or `last`; empty: as the schedule says
  std::string reference = {};  // of every tile kernel: `follow`, `lazy` or `speculative`

  bool is_on() const { return !parts.empty() || !combine.empty() || !reference.empty(); }
};

// The text of the first schedule with these changes; nothing if something was reported.
std::optional<std::string> edited_schedule(const ir::Program& program, const ScheduleEdit& edit,
                                           Unit& unit);

// Runs the scheduled program in the declared dtypes and compares it with the definition. The first
// disagreement as text, or an empty string; nothing if a diagnostic was reported.
std::optional<std::string> check_scheduled(const ir::Program& program, const ir::Program& scheduled,
                                           const RunRequest& request, Unit& unit);

}  // namespace nautilus::driver

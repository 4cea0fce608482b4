// SPDX-License-Identifier: Apache-2.0
// From a program of any level to one that runs: the MA-tile program with its kernels and its plan.
// Every command that shows, runs or times kernels gets them through this file.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "compile/passes.h"
#include "decision/decisions.h"
#include "driver/load/load.h"
#include "ir/pass.h"

namespace nautilus::driver {

struct KernelRequest {
  // The text of a schedule, or of several for different sizes, for a program of the math language;
  // without one its first schedule. A schedule that is not legal, or with tiles that have no
  // kernel, is an error.
  std::optional<std::string> schedule = {};
  ir::PassTrace* trace = nullptr;  // gets the steps of the program and of each kernel
  bool has_notes = false;          // about kernels; always with a trace
};

// Where a kernel of the program comes from, and what was decided about it.
struct KernelNote {
  std::string kernel;  // its name in the program
  decision::Form form = decision::Form::Tile;
  std::string statement;  // the statement that names it in schedules; empty without a schedule
  size_t alternative = 1;
  size_t alternatives = 1;
  ir::Block lines;               // of its schedule
  std::string in_front_of = {};  // the kernel that they are of as well; empty: of this one alone
};

// What was scheduled, for reports about it.
struct Origin {
  ir::Program statements;          // of loops, one for each statement that scheduling saw
  std::set<std::string> in_tiles;  // of them, those that kernels of tiles or of patches compute
  // Which statements joined which kernel, and why others did not.
  std::vector<std::string> derivation;
};

struct Kernels {
  ir::Program program;
  std::string schedule;  // the text of their schedule; empty without one
  // If asked for; empty for kernels that were given as MA-tile text.
  std::vector<KernelNote> notes = {};
  std::optional<Origin> origin = {};  // none for kernels that were given as MA-tile text; of
                                      // several schedules for sizes, the first one's
  bool is_stored = false;             // they were read, not made (stored_kernels.h)
};

// Empty if something was reported, or is in `error`. A program that comes from a pass (`after`)
// continues after it; an MA-tile program with finished kernels is returned unchanged.
std::optional<Kernels> make_kernels(const ir::Program& program, const KernelRequest& request,
                                    Unit& unit, std::string* error);

// Of a schedule that was replayed, which then has all its lines. Empty if something was reported.
struct FirstSchedule;
std::optional<Kernels> complete_kernels(FirstSchedule& scheduled, Unit& unit);
// Of the first schedule of a program, with their steps. Empty if they do not fit together.
std::optional<Kernels> explained_kernels(const ir::Program& program, const FirstSchedule& scheduled,
                                         ir::PassTrace& trace, Unit& unit);

// With the first schedule. Empty if something was reported.
std::optional<ir::Program> lower_to_kernels(const ir::Program& program, Unit& unit);
// With the decisions of a schedule's text.
std::optional<ir::Program> lower_with_schedule(const ir::Program& program, std::string_view text,
                                               Unit& unit, std::string* error);

// One pass of any level, `schedule` included. The result of a pass on a dump is again a dump.
std::optional<ir::Program> run_single_pass(const compile::PassInfo& pass,
                                           const ir::Program& program, ir::PassContext& context,
                                           Unit& unit);

}  // namespace nautilus::driver

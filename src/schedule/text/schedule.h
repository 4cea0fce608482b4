// SPDX-License-Identifier: Apache-2.0
// A schedule: the decisions that turn a program into kernels, as text.
//
//   schedule @attention_causal version 2 equations 5d0f6ab2c3e41f77
//   names K 10, O 0, Q 7, ...
//   algebra distribute_row_shift off; algebra gather off
//   kernel O tile
//     rows i; stream j; fuse S, T, e; roll m, l
//     tile i 192; tile j 80; groups 3 sharing
//     loop down; pipeline 1; segments on; reference speculative lag 8
//     promote Q 256; ...; ring K slots 3 loader 0; ring V slots 3 loader 1; stages O 1
//     order longest sections 32; source dynamic
//     registers compute 160 load 32; turns on
//   or
//     tile i 128; ...
//   kernel Y rows
//     ...
//
// First come lines about the program, then kernels, each named after the statement that it was
// grown from, and of a form (tile, rows, points, parts). Lines of one topic stand on one line of
// text, with `;` between them; decision/decisions.h says what each means. An `or` is another whole
// list for the same kernel: the plan runs the cheapest. A line may end with who made the decision:
// auto (which is not printed), tuned or user. A word may be a hole, `?{64,96}` (holes.h). The
// compiler's rules choose whatever is left out, and also kernels for statements that no kernel
// names. A text may have several schedules for different sizes (sized_schedules.h).
//
// The program is named by a hash of its equations (spec/equations_hash.h), in which names, order
// and hints do not count. `names` says at which place of the equations a name of the lines is met:
// in a program with other names the lines are about what stands there.
#pragma once

#include <map>
#include <set>

#include "algebra/outcome.h"
#include "decision/decisions.h"

namespace nautilus::schedule {

using algebra::Outcome;
using algebra::Rejection;

using decision::By;

struct KernelSchedule {
  std::string name;
  std::vector<ir::Block>
      alternatives;  // whole lists of lines; the first says which statements there are
  decision::Form form = decision::Form::Tile;
};

struct Schedule {
  static constexpr int kVersion = 2;
  std::string program;
  std::string equations;  // their hash; empty where an older version did not have it
  ir::Block lines;        // about the program
  std::vector<KernelSchedule> kernels;
  std::map<std::string, int64_t> places = {};  // of names in the equations
  std::set<std::string> listed = {};  // names that are printed though no line has them: sizes
};

std::string print(const Schedule& schedule);
// The rejection names the line. Text of version 1 becomes lines of this version. Text of several
// schedules is rejected.
Outcome<Schedule> parse_schedule(std::string_view text, expr::ExprPool& pool);
// Lines of version 1 (schedule_version1.cc).
Outcome<Schedule> parse_version1(std::string_view text, expr::ExprPool& pool);

// Puts lines that passes decided into a kernel's list; they replace its lines about the same.
void complete(ir::Block& alternative, const ir::Block& decided);

}  // namespace nautilus::schedule

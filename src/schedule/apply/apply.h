// SPDX-License-Identifier: Apache-2.0
// From the lines of a schedule to kernels, from kernels to a program, and from kernels to lines.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/op.h"
#include "schedule/apply/kernel.h"
#include "schedule/text/schedule.h"

namespace nautilus::schedule {

// The decisions of kernels, in order. `by`: who chose their sizes.
std::vector<KernelSchedule> to_schedule(const std::vector<Kernel>& kernels, By by);

// Where a grid nest comes from: the seed of its kernel, whether the kernel is split into parts, and
// the decisions made when the nest was built.
struct NestOrigin {
  std::string seed;
  bool is_whole = true;
  ir::Block decided = {};
};

struct Scheduled {
  ir::Program program;
  std::vector<std::string> notes;  // the derivation, for people
  std::vector<NestOrigin> nests;   // grid nests, in order
  // Of a schedule that was applied: its tile kernels, and the program that they are kernels of,
  // with the schedule's `round` and `locate` lines.
  std::vector<Kernel> kernels = {};
  ir::Program rounded = {};
};

// Checks every decision against the program and builds the scheduled form. A decision that is not
// legal is refused with its line; lines for later passes stay in the kernels.
Outcome<Scheduled> apply_schedule(const ir::Program& program, const Schedule& schedule,
                                  expr::ExprPool& pool);

// The program of kernels and remaining statements.
Outcome<Scheduled> assemble(const ir::Program& program, const StatementList& list,
                            std::vector<Kernel> kernels, expr::ExprPool& pool);

// Whether the kernels and the remaining statements have an order without circular dependences.
// `assemble` needs this where no line can be refused. Also chooses what the kernels store.
bool have_order(const StatementList& list, std::vector<Kernel>& kernels);

// Statements that outputs need and no kernel stores, with the kernels' choice of what to store.
std::set<int> remaining(const StatementList& list, std::vector<Kernel>& kernels);

}  // namespace nautilus::schedule

// SPDX-License-Identifier: Apache-2.0
// The first schedule of a program: which statements become kernels, from index sets, dependences
// and the algebra alone.
#pragma once

#include <map>
#include <string>

#include "schedule/schedule.h"

namespace nautilus::schedule {

struct AutoSchedule {
  std::vector<Kernel> kernels;
  std::vector<std::string> notes;  // why reductions started no kernel
};

// Seeds are tried from the last reduction to the first: a kernel takes in what its results need, so
// the last reduction of a cascade has the most to gain. `refusals`: seeds whose kernels had no
// tiles; they are tried with smaller ones, as often as there are.
struct Refusal {
  int times = 0;
  std::string why;
};
using Refusals = std::map<std::string, Refusal>;
AutoSchedule auto_schedule(const ir::Program& program, expr::ExprPool& pool,
                           const Refusals& refusals = {});

}  // namespace nautilus::schedule

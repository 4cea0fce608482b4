// SPDX-License-Identifier: Apache-2.0
// The first schedule of a program: which statements become kernels, from index sets, dependences
// and the algebra alone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "schedule/apply/kernel.h"
#include "schedule/choose/memo.h"

namespace nautilus::schedule {

struct AutoSchedule {
  std::vector<Kernel> kernels;
  std::vector<std::string> notes;  // why reductions started no kernel
};

// What a kernel without a form on the device has given up, from the least loss to the greatest. A
// later value includes all earlier ones.
enum class Retreat : uint8_t {
  Nothing,
  Parts,         // of its streamed axis
  Alternatives,  // of its sizes: one kernel, with those tried first
  Tiles,         // of this size: the next smaller ones, as long as there are any
  Company,   // further reductions, and what follows them; tile sizes are tried again from the first
  Products,  // that compute the seed's operands: those come from memory; tile sizes are tried again
             // from the first
  Kernel,
};

struct Refusal {
  Retreat given_up = Retreat::Nothing;
  std::optional<TileConfig> sizes = {};  // that it must have; nothing: those tried first
  std::string why;
};

// After one more refusal of the kernel that was chosen.
Refusal next_retreat(const Refusal& refusal, const Kernel& refused, const Target& target,
                     std::string why);

// Seeds are tried from the last reduction to the first: a kernel grows by the statements that its
// results need, so the last reduction of a cascade has the most to gain. `refusals`: of seeds that
// had no form on the device.
using Refusals = std::map<std::string, Refusal>;
AutoSchedule auto_schedule(const ir::Program& program, expr::ExprPool& pool, ScheduleMemo& memo,
                           const Refusals& refusals = {});

}  // namespace nautilus::schedule

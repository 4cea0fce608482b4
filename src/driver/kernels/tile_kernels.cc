// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/tile_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "choose/program_cost.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "schedule/apply/apply.h"
#include "schedule/apply/locate.h"
#include "schedule/apply/round.h"

namespace nautilus::driver {

namespace {

// A kernel finds positions of extremes together with its other rolled reductions, if one kernel has
// all of them.
schedule::AutoSchedule located_schedule(ir::Program& base, ir::Block& lines,
                                        const schedule::Refusals& refusals, Unit& unit) {
  std::vector<std::string> targets = schedule::positions(base, unit.pool);
  while (true) {
    ir::Program located = base;
    for (const std::string& t : targets) located = *schedule::locate(located, t, unit.pool);
    schedule::AutoSchedule found = schedule::auto_schedule(located, unit.pool, unit.memo, refusals);
    const auto missed = std::erase_if(targets, [&](const std::string& t) {
      return !schedule::is_located_in_one_kernel(located, t, found.kernels);
    });
    if (missed > 0) continue;
    for (const std::string& t : targets)
      lines.push_back(ir::make(decision::Locate{unit.pool.name(t), {}}));
    base = std::move(located);
    return found;
  }
}

// Alternatives of kernels, by their seeds, that have no form on the device, while another
// alternative has one.
using RefusedAlternatives = std::map<std::string, std::vector<schedule::TileConfig>>;

std::string seed_of(const schedule::Kernel& k) {
  for (const schedule::Member& m : k.fusion.members) {
    if (m.statement == k.fusion.seed) return std::string(m.target.str());
  }
  return "";
}

void leave_out(const RefusedAlternatives& alternatives, schedule::Kernel& k) {
  const auto refused = alternatives.find(seed_of(k));
  if (refused == alternatives.end()) return;
  for (const schedule::TileConfig& s : refused->second) {
    std::erase(k.others, s);
    if (!(k.sizes == s) || k.split.is_on() || k.others.empty()) continue;
    k.sizes = k.others[0];
    k.others.erase(k.others.begin());
  }
}

// The schedule of a lowered program, with smaller tiles for these seeds, or no kernels.
FirstSchedule schedule_after(const ir::Program& lowered, const schedule::Refusals& refusals,
                             const RefusedAlternatives& alternatives, Unit& unit,
                             bool locates = true) {
  ir::Program base = lowered;
  ir::Block lines;
  schedule::AutoSchedule found =
      locates ? located_schedule(base, lines, refusals, unit)
              : schedule::auto_schedule(base, unit.pool, unit.memo, refusals);
  const auto operands =
      schedule::operands_to_round(schedule::statements_of(base, unit.pool), found.kernels);
  for (const auto& [temp, dtype] : operands) {
    const auto next = schedule::round_operand(base, temp, dtype, unit.pool);
    if (!next) continue;
    base = *next;
    lines.push_back(ir::make(decision::Round{unit.pool.name(temp), dtype, {}}));
  }
  if (!operands.empty()) {
    found = schedule::auto_schedule(base, unit.pool, unit.memo, refusals);
    for (const ir::Op& line : lines) {
      const auto* l = line.get<decision::Locate>();
      if (l &&
          !schedule::is_located_in_one_kernel(base, std::string(l->tensor.str()), found.kernels))
        return schedule_after(lowered, refusals, alternatives, unit, false);
    }
  }
  for (schedule::Kernel& k : found.kernels) leave_out(alternatives, k);
  FirstSchedule out{
      lowered, {lowered.name, {}, lines, schedule::to_schedule(found.kernels, schedule::By::Auto)},
      {},      std::move(found.notes),
      {},      found.kernels,
      base,    {}};
  const auto list = schedule::statements_of(base, unit.pool);
  auto built = schedule::assemble(base, list, std::move(found.kernels), unit.pool);
  NAUT_CHECK(built, "the chosen kernels do not fit together: {}", built.rejection().message);
  out.program = built->program;
  out.nests = built->nests;
  out.notes.insert(out.notes.begin(), built->notes.begin(), built->notes.end());
  check_verifies(out.program, unit);
  return out;
}

// The sizes of a kernel's alternative: those of its nests, in their order.
const schedule::TileConfig& sizes_of(const schedule::Kernel& k, size_t alternative) {
  return alternative == 0 ? k.sizes : k.others[alternative - 1];
}

// Seeds of nests without a kernel, and why: a nest with parts has none, or no nest without parts
// has one. A nest without parts is only left out if another one has a kernel.
std::map<std::string, std::string> refused_seeds(const FirstSchedule& schedule,
                                                 RefusedAlternatives& alternatives, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  std::map<std::string, std::string> refused;  // parts
  std::map<std::string, std::string> refused_wholes;
  std::map<std::string, std::vector<size_t>> refused_alternatives;
  std::set<std::string> has_whole;
  std::map<std::string, size_t> alternative_of;  // the next nest of the seed
  size_t n = 0;
  for (const ir::Op& op : schedule.program.body) {
    const auto* nest = op.get<scalar::For>();
    if (!nest || nest->kind != scalar::LoopKind::Grid) continue;
    const schedule::NestOrigin& origin = schedule.nests[n++];
    const size_t alternative = alternative_of[origin.seed]++;
    const std::string why = unit.trials.refusal(schedule.program, op, context);
    if (why.empty()) {
      if (origin.is_whole) has_whole.insert(origin.seed);
      continue;
    }
    (origin.is_whole ? refused_wholes : refused).emplace(origin.seed, why);
    if (origin.is_whole) refused_alternatives[origin.seed].push_back(alternative);
  }
  for (const auto& [seed, why] : refused_wholes) {
    if (!has_whole.contains(seed)) {
      refused.emplace(seed, why);
      continue;
    }
    for (const schedule::Kernel& k : schedule.kernels) {
      if (seed_of(k) != seed) continue;
      for (const size_t alternative : refused_alternatives[seed])
        alternatives[seed].push_back(sizes_of(k, alternative));
    }
  }
  return refused;
}

const schedule::Kernel& kernel_of(const FirstSchedule& schedule, std::string_view seed) {
  const auto it = std::find_if(schedule.kernels.begin(), schedule.kernels.end(),
                               [&](const schedule::Kernel& k) { return seed_of(k) == seed; });
  NAUT_CHECK(it != schedule.kernels.end(), "no kernel of {}", seed);
  return *it;
}

// Until every kernel has a form. `refusals`: what kernels had to give up.
FirstSchedule tried_schedule(const ir::Program& lowered, schedule::Refusals& refusals, Unit& unit) {
  RefusedAlternatives alternatives;
  while (true) {
    FirstSchedule out = schedule_after(lowered, refusals, alternatives, unit);
    const size_t known = alternatives.size();
    const auto refused = refused_seeds(out, alternatives, unit);
    if (refused.empty())
      return alternatives.size() == known ? out
                                          : schedule_after(lowered, refusals, alternatives, unit);
    for (const auto& [seed, why] : refused) {
      schedule::Refusal& r = refusals[seed];
      r = schedule::next_retreat(r, kernel_of(out, seed), ir::target_of(lowered), why);
    }
  }
}

FirstSchedule schedule_with(const ir::Program& lowered, bool is_tried, schedule::Refusals& refusals,
                            Unit& unit) {
  return is_tried ? tried_schedule(lowered, refusals, unit)
                  : schedule_after(lowered, refusals, {}, unit);
}

}  // namespace

double predicted_cost(const FirstSchedule& schedule, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  return choose::program_cost(schedule.program, schedule.kernels, schedule.rounded, context);
}

void check_verifies(const ir::Program& scheduled, Unit& unit) {
  diag::Sink sink(unit.sources);
  const bool ok = verify(scheduled, sink);
  NAUT_CHECK(ok, "scheduling made a program that does not verify: {}\n{}", sink.all()[0].message,
             ir::print(scheduled));
}

FirstSchedule with_tile_kernels(const ir::Program& loops, bool is_tried, Unit& unit) {
  const target::Target& target = ir::target_of(loops);
  schedule::Refusals refusals;
  FirstSchedule out = schedule_with(loops, is_tried, refusals, unit);
  std::set<std::string> asked;
  for (size_t k = 0; k < out.kernels.size();) {
    const std::string seed = seed_of(out.kernels[k++]);
    if (!choose::may_lose_to_loops(out.kernels[k - 1], target) || !asked.insert(seed).second)
      continue;
    schedule::Refusals without = refusals;
    without[seed] = {schedule::Retreat::Kernel,
                     {},
                     "tiles would be nearly empty, and loops are predicted to be faster"};
    FirstSchedule other = schedule_with(loops, is_tried, without, unit);
    const double share = predicted_cost(other, unit) / predicted_cost(out, unit);
    if (share >= target.nests.worth_without_tiles) {
      out.notes.push_back(fmt::format(
          "tiles of {} are nearly empty; loops are predicted to take {:.2g} of their time", seed,
          share));
      continue;
    }
    out = std::move(other);
    refusals = std::move(without);
    k = 0;  // other kernels may compute its statements now
  }
  return out;
}

}  // namespace nautilus::driver

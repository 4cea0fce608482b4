// SPDX-License-Identifier: Apache-2.0
#include "driver/scheduling.h"

#include <fmt/format.h>

#include <algorithm>

#include "diag/render.h"
#include "driver/pipeline.h"
#include "ir/print.h"
#include "lower/tile_trial.h"
#include "scalar/interp.h"
#include "schedule/candidates.h"
#include "schedule/locate.h"
#include "schedule/plan_cost.h"
#include "schedule/round.h"

namespace nautilus::driver {
namespace {

void verify_scheduled(const ir::Program& program, Unit& unit) {
  diag::Sink sink(unit.sources);
  const bool ok = verify(program, sink);
  NAUT_CHECK(ok, "scheduling made a program that does not verify: {}\n{}", sink.all()[0].message,
             ir::print(program));
}

// Positions of extremes are found beside what else a kernel rolls, where one kernel has all of it.
schedule::AutoSchedule located_schedule(ir::Program& base,
                                        std::vector<schedule::Decision>& decisions,
                                        const schedule::Refusals& refusals, Unit& unit) {
  std::vector<std::string> targets = schedule::positions(base, unit.pool);
  while (true) {
    ir::Program located = base;
    for (const std::string& t : targets) located = *schedule::locate(located, t, unit.pool);
    schedule::AutoSchedule found = schedule::auto_schedule(located, unit.pool, refusals);
    const auto missed = std::erase_if(targets, [&](const std::string& t) {
      return !schedule::is_located_in_one_kernel(located, t, found.kernels);
    });
    if (missed > 0) continue;
    for (const std::string& t : targets)
      decisions.push_back({"locate", {t}, schedule::Provenance::Auto});
    base = std::move(located);
    return found;
  }
}

// The schedule of a lowered program, with smaller tiles for these seeds, or no kernels.
FirstSchedule schedule_after(const ir::Program& lowered, const schedule::Refusals& refusals,
                             Unit& unit, bool locates = true) {
  ir::Program base = lowered;
  std::vector<schedule::Decision> rounds;
  schedule::AutoSchedule found = locates ? located_schedule(base, rounds, refusals, unit)
                                         : schedule::auto_schedule(base, unit.pool, refusals);
  const auto operands =
      schedule::operands_to_round(schedule::statements_of(base, unit.pool), found.kernels);
  for (const auto& [temp, dtype] : operands) {
    const auto next = schedule::round_operand(base, temp, dtype, unit.pool);
    if (!next) continue;
    base = *next;
    rounds.push_back({"round", {temp, std::string(expr::name(dtype))}, schedule::Provenance::Auto});
  }
  if (!operands.empty()) {
    found = schedule::auto_schedule(base, unit.pool, refusals);
    for (const schedule::Decision& d : rounds) {
      if (d.verb == "locate" &&
          !schedule::is_located_in_one_kernel(base, d.words[0], found.kernels))
        return schedule_after(lowered, refusals, unit, false);
    }
  }
  FirstSchedule out{
      lowered, schedule::to_schedule(lowered, found.kernels, schedule::Provenance::Auto),
      {},      std::move(found.notes),
      {},      found.kernels,
      base,    {}};
  out.decisions.decisions.insert(out.decisions.decisions.begin(), rounds.begin(), rounds.end());
  const auto list = schedule::statements_of(base, unit.pool);
  auto built = schedule::assemble(base, list, std::move(found.kernels), unit.pool);
  NAUT_CHECK(built, "the chosen kernels do not fit together: {}", built.rejection().message);
  out.program = built->program;
  out.nests = built->nests;
  out.notes.insert(out.notes.begin(), built->notes.begin(), built->notes.end());
  verify_scheduled(out.program, unit);
  return out;
}

// Seeds whose nests have no kernel, and why: parts without one, or no nest for the whole with one.
std::map<std::string, std::string> refused_seeds(const FirstSchedule& schedule,
                                                 ir::PassContext& context) {
  std::map<std::string, std::string> refused;  // parts
  std::map<std::string, std::string> refused_wholes;
  std::set<std::string> has_whole;
  size_t n = 0;
  for (const ir::Op& op : schedule.program.body) {
    const auto* nest = op.get<scalar::For>();
    if (!nest || nest->kind != scalar::LoopKind::Grid) continue;
    const schedule::NestOrigin& origin = schedule.nests[n++];
    if (origin.is_whole && has_whole.contains(origin.seed)) continue;
    const std::string why = lower::tile_refusal(schedule.program, op, context);
    if (!why.empty()) {
      (origin.is_whole ? refused_wholes : refused).emplace(origin.seed, why);
    } else if (origin.is_whole) {
      has_whole.insert(origin.seed);
    }
  }
  for (const auto& [seed, why] : refused_wholes)
    if (!has_whole.contains(seed)) refused.emplace(seed, why);
  return refused;
}

bool is_in_parts(const FirstSchedule& schedule, std::string_view seed) {
  return std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                     [&](const schedule::Kernel& k) {
                       const schedule::Member* m = nullptr;
                       for (const schedule::Member& x : k.group.members) {
                         if (x.statement == k.group.seed) m = &x;
                       }
                       return m && m->target.str() == seed && k.split.is_on();
                     });
}

// A kernel that has no form is tried whole, then with smaller tiles, and at last left out.
FirstSchedule schedule_of(const ir::Program& lowered, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  schedule::Refusals refusals;
  while (true) {
    FirstSchedule out = schedule_after(lowered, refusals, unit);
    const auto refused = refused_seeds(out, context);
    if (refused.empty()) return out;
    for (const auto& [seed, why] : refused) {
      schedule::Refusal& r = refusals[seed];
      r.times += r.times == 0 && !is_in_parts(out, seed) ? 2 : 1;
      r.why = why;
    }
  }
}

struct KernelCounts {
  size_t products = 0;
  size_t rolled = 0;
};

KernelCounts counts(const FirstSchedule& schedule) {
  KernelCounts n;
  for (const schedule::Kernel& k : schedule.kernels) {
    n.products += k.group.dots.size();
    for (const schedule::Member& m : k.group.members) n.rolled += m.is_rolled ? 1 : 0;
  }
  return n;
}

// Of what two passes take: loops with running moments take 1.2 to 1.8 times what is predicted.
constexpr double kWorthApart = 0.8;

// Whether a form of the program without differences in its products is worth its further sums: it
// reads once what the other one reads twice. The time of a small kernel or two is not known so
// well.
bool is_better_apart(const FirstSchedule& apart, const FirstSchedule& whole, Unit& unit) {
  const KernelCounts a = counts(apart);
  const KernelCounts w = counts(whole);
  if (a.products < w.products || a.rolled <= w.rolled) return false;
  const auto cycles = [&](const FirstSchedule& s) {
    return schedule::plan_cycles(s.kernels, s.rounded, schedule::kHopper, unit.pool);
  };
  const auto with = cycles(apart);
  const double unsure = 2 * schedule::kHopper.next_kernel_cycles;
  return !with || *with < kWorthApart * *cycles(whole) + unsure;
}

}  // namespace

std::optional<FirstSchedule> untried_schedule(const ir::Program& program, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  const auto lowered = lower_with_algebra(program, context);
  if (!lowered) return std::nullopt;
  for (const Algebra& a : {Algebra{.takes_apart = true}, Algebra{.gathers = true}}) {
    if (lower_with_algebra(program, context, a) != lowered) return std::nullopt;
  }
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  return schedule_after(*lowered, {}, unit);
}

std::optional<FirstSchedule> first_schedule(const ir::Program& program, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto lowered = lower_with_algebra(program, context);
  if (!lowered) return std::nullopt;
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  FirstSchedule out = schedule_of(*lowered, unit);
  Algebra algebra{.takes_apart = true};
  if (const auto apart = lower_with_algebra(program, context, algebra);
      apart && *apart != *lowered) {
    FirstSchedule other = schedule_of(*apart, unit);
    algebra.takes_apart = is_better_apart(other, out, unit);
    if (algebra.takes_apart) {
      out = std::move(other);
    } else {
      out.notes.push_back(
          "differences from values of a row stay in their products: taking them apart takes "
          "longer");
    }
  } else {
    algebra.takes_apart = false;
  }
  out.algebra = algebra;
  // Copies of operands that no box can bring are made where that gives more kernels.
  algebra.gathers = true;
  const auto gathered = lower_with_algebra(program, context, algebra);
  if (!gathered || *gathered == out.unscheduled) return out;
  FirstSchedule other = schedule_of(*gathered, unit);
  if (other.kernels.size() <= out.kernels.size()) return out;
  other.notes.insert(other.notes.begin(),
                     "operands that no box can bring as they lie are copied first");
  other.algebra = algebra;
  return other;
}

std::optional<ir::Program> unscheduled_for(const ir::Program& program,
                                           const schedule::Schedule& decisions, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  for (const bool gathers : {false, true}) {
    for (const bool takes_apart : {false, true}) {
      auto lowered = lower_with_algebra(program, context, {takes_apart, gathers});
      if (lowered && schedule::program_hash(*lowered) == decisions.hash) return lowered;
    }
  }
  return lower_with_algebra(program, context);
}

std::optional<FirstSchedule> replay_schedule(const ir::Program& program, std::string_view text,
                                             Unit& unit, std::string* error) {
  const auto decisions = schedule::parse_schedule(text);
  if (!decisions) {
    *error = decisions.rejection().message;
    return std::nullopt;
  }
  const auto lowered = unscheduled_for(program, *decisions, unit);
  if (!lowered) return std::nullopt;
  auto built = schedule::apply_schedule(*lowered, *decisions, unit.pool);
  if (!built) {
    *error = built.rejection().message;
    return std::nullopt;
  }
  verify_scheduled(built->program, unit);
  return FirstSchedule{*lowered, *decisions, built->program, built->notes, built->nests, {},
                       {},       {}};
}

std::optional<std::string> edited_schedule(const ir::Program& program, const SplitEdit& edit,
                                           Unit& unit) {
  const auto first = first_schedule(program, unit);
  if (!first) return std::nullopt;
  schedule::Schedule changed = first->decisions;
  changed.decisions.clear();
  auto kernel = first->kernels.begin();
  std::string axis;  // of the open kernel
  std::vector<std::string> split;
  const auto close = [&] {
    if (axis.empty()) return;
    if (!edit.parts.empty()) split = {axis, edit.parts};
    if (!split.empty() && !edit.combine.empty()) {
      split.erase(std::find(split.begin(), split.end(), "combine"), split.end());
      split.insert(split.end(), {"combine", edit.combine});
    }
    if (!split.empty()) changed.decisions.push_back({"split", split, schedule::Provenance::User});
    split.clear();
  };
  for (const schedule::Decision& d : first->decisions.decisions) {
    if (d.verb == "kernel") {
      close();
      axis = kernel++->group.stream.name().str();
    }
    d.verb == "split" ? void(split = d.words) : changed.decisions.push_back(d);
  }
  close();
  return schedule::print(changed);
}

std::optional<std::string> check_scheduled(const ir::Program& program, const ir::Program& scheduled,
                                           const RunRequest& request, Unit& unit) {
  const auto env = prepare(program, request, unit);
  if (!env) return std::nullopt;
  const auto want = spec::evaluate(program, *env, {}, unit.pool, unit.sink);
  if (!want) return std::nullopt;
  const auto got = scalar::interpret(scheduled, *env, scalar::Arithmetic::Declared, unit.sink);
  if (!got) return std::nullopt;
  const ir::Numerics numerics = ir::numerics_of(program);
  for (const auto& [name, result] : *want) {
    const spec::Comparison c = spec::compare(got->at(name), result, numerics);
    if (c.is_accepted) continue;
    return fmt::format(
        "`{}`: scheduled, element {} is {}, the oracle {} +- {}; {} wrong of {}", name,
        c.worst_index, got->at(name).number(c.worst_index), result.value.number(c.worst_index),
        result.bound[static_cast<size_t>(c.worst_index)], c.mismatches, result.value.size());
  }
  return "";
}

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/scheduling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compile/kernels.h"
#include "compile/tile_trial.h"
#include "diag/render.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "scalar/interp.h"
#include "schedule/apply/apply.h"
#include "schedule/apply/locate.h"
#include "schedule/apply/round.h"
#include "schedule/choose/candidates.h"
#include "schedule/choose/plan_cost.h"
#include "schedule/text/schedule.h"
#include "spec/equations_hash.h"

namespace nautilus::driver {

using compile::lower_with_algebra;

namespace {

void verify_scheduled(const ir::Program& program, Unit& unit) {
  diag::Sink sink(unit.sources);
  const bool ok = verify(program, sink);
  NAUT_CHECK(ok, "scheduling made a program that does not verify: {}\n{}", sink.all()[0].message,
             ir::print(program));
}

// Positions of extremes are found beside what else a kernel rolls, where one kernel has all of it.
schedule::AutoSchedule located_schedule(ir::Program& base, ir::Block& lines,
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
  schedule::AutoSchedule found = locates ? located_schedule(base, lines, refusals, unit)
                                         : schedule::auto_schedule(base, unit.pool, refusals);
  const auto operands =
      schedule::operands_to_round(schedule::statements_of(base, unit.pool), found.kernels);
  for (const auto& [temp, dtype] : operands) {
    const auto next = schedule::round_operand(base, temp, dtype, unit.pool);
    if (!next) continue;
    base = *next;
    lines.push_back(ir::make(decision::Round{unit.pool.name(temp), dtype, {}}));
  }
  if (!operands.empty()) {
    found = schedule::auto_schedule(base, unit.pool, refusals);
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
  verify_scheduled(out.program, unit);
  return out;
}

// The sizes of a kernel's alternative: those of its nests, in their order.
const schedule::TileConfig& sizes_of(const schedule::Kernel& k, size_t alternative) {
  return alternative == 0 ? k.sizes : k.others[alternative - 1];
}

// Seeds whose nests have no kernel, and why: parts without one, or no nest for the whole with one.
// A nest for the whole beside one that has a kernel is only left out.
std::map<std::string, std::string> refused_seeds(const FirstSchedule& schedule,
                                                 ir::PassContext& context,
                                                 RefusedAlternatives& alternatives) {
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
    const std::string why = compile::tile_refusal(schedule.program, op, context);
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

// A kernel that has no form gives up one thing after the other (schedule::Retreat), and at last
// itself.
FirstSchedule schedule_of(const ir::Program& lowered, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  schedule::Refusals refusals;
  RefusedAlternatives alternatives;
  while (true) {
    FirstSchedule out = schedule_after(lowered, refusals, alternatives, unit);
    const size_t known = alternatives.size();
    const auto refused = refused_seeds(out, context, alternatives);
    if (refused.empty())
      return alternatives.size() == known ? out
                                          : schedule_after(lowered, refusals, alternatives, unit);
    for (const auto& [seed, why] : refused) {
      schedule::Refusal& r = refusals[seed];
      r = schedule::next_retreat(r, kernel_of(out, seed), ir::target_of(lowered), why);
    }
  }
}

schedule::KernelSchedule& tile_kernel(std::vector<schedule::KernelSchedule>& kernels,
                                      std::string_view seed) {
  const auto it = std::find_if(kernels.begin(), kernels.end(), [&](const auto& k) {
    return k.name == seed && k.form == decision::Form::Tile;
  });
  NAUT_CHECK(it != kernels.end(), "no kernel of {}", seed);
  return *it;
}

// A kernel that nests became by rule, behind the others; or another alternative of the last.
void add_kernel(const decision::Kernel& made, std::vector<schedule::KernelSchedule>& kernels) {
  const bool is_alternative = !kernels.empty() && kernels.back().name == made.name.str() &&
                              kernels.back().form == made.form;
  if (!is_alternative) kernels.push_back({std::string(made.name.str()), {}, made.form});
  kernels.back().alternatives.push_back(made.body);
}

}  // namespace

void complete(FirstSchedule& schedule, Unit& unit) {
  ir::Block decided;
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  context.decided = &decided;
  if (!compile::nests_to_kernels(schedule.program, context)) return;
  std::vector<schedule::KernelSchedule> kernels;
  std::map<std::string, size_t> alternative_of;
  size_t n = 0;
  for (const ir::Op& op : decided) {
    const auto* made = op.get<decision::Kernel>();
    if (!made) continue;
    if (made->form != decision::Form::Tile) {
      add_kernel(*made, kernels);
      continue;
    }
    NAUT_CHECK(n < schedule.nests.size(), "more tile kernels than nests");
    const auto& [seed, is_whole, of_nest] = schedule.nests[n++];
    const size_t alternative = alternative_of[seed]++;
    for (schedule::KernelSchedule& k : schedule.decisions.kernels) {
      if (k.name != seed) continue;
      if (alternative == 0) kernels.push_back(k);
      if (alternative >= k.alternatives.size()) continue;
      ir::Block& lines = tile_kernel(kernels, seed).alternatives[alternative];
      schedule::complete(lines, of_nest);
      schedule::complete(lines, made->body);
    }
  }
  schedule.decisions.kernels = std::move(kernels);
}

namespace {

// What the schedule says about the program itself.
void describe(FirstSchedule& schedule, const ir::Program& program) {
  using decision::Rewrite;
  using decision::Switch;
  schedule.decisions.equations = spec::equations_hash(program);
  const auto line = [](Rewrite rewrite, bool is_on) {
    return ir::make(decision::Algebra{rewrite, is_on ? Switch::On : Switch::Off, {}});
  };
  ir::Block& lines = schedule.decisions.lines;
  lines.insert(lines.begin(),
               {line(Rewrite::DistributeRowShift, schedule.algebra.distributes_row_shift),
                line(Rewrite::Gather, schedule.algebra.gathers)});
}

struct KernelCounts {
  size_t products = 0;
  size_t rolled = 0;
};

KernelCounts counts(const FirstSchedule& schedule) {
  KernelCounts n;
  for (const schedule::Kernel& k : schedule.kernels) {
    n.products += k.fusion.dots.size();
    for (const schedule::Member& m : k.fusion.members) n.rolled += m.is_rolled ? 1 : 0;
  }
  return n;
}

// Whether a form of the program without differences in its products is worth its further sums: it
// reads once what the other one reads twice. The time of a small kernel or two is not known so
// well.
bool is_better_apart(const FirstSchedule& apart, const FirstSchedule& whole, Unit& unit) {
  const KernelCounts a = counts(apart);
  const KernelCounts w = counts(whole);
  if (a.products < w.products || a.rolled <= w.rolled) return false;
  const target::Target& target = ir::target_of(whole.program);
  const auto cycles = [&](const FirstSchedule& s) {
    return schedule::plan_cycles(s.kernels, s.rounded, target, unit.pool);
  };
  const auto with = cycles(apart);
  const double unsure = 2 * target.costs.next_kernel_cycles;
  return !with || *with < target.algebra.worth_apart * *cycles(whole) + unsure;
}

}  // namespace

std::optional<FirstSchedule> schedule_without_trial(const ir::Program& program, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  const auto lowered = lower_with_algebra(program, context);
  if (!lowered) return std::nullopt;
  for (const Algebra& a : {Algebra{.distributes_row_shift = true}, Algebra{.gathers = true}}) {
    if (lower_with_algebra(program, context, a) != lowered) return std::nullopt;
  }
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  return schedule_after(*lowered, {}, {}, unit);
}

FirstSchedule schedule_loops(const ir::Program& loops, bool is_tried, Unit& unit) {
  const base::StageScope stage(fmt::format("scheduling @{}", loops.name),
                               "nautilus schedule <the program>");
  return is_tried ? schedule_of(loops, unit) : schedule_after(loops, {}, {}, unit);
}

std::optional<FirstSchedule> first_schedule(const ir::Program& program, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto lowered = lower_with_algebra(program, context);
  if (!lowered) return std::nullopt;
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  FirstSchedule out = schedule_of(*lowered, unit);
  Algebra algebra{.distributes_row_shift = true};
  if (const auto apart = lower_with_algebra(program, context, algebra);
      apart && *apart != *lowered) {
    FirstSchedule other = schedule_of(*apart, unit);
    algebra.distributes_row_shift = is_better_apart(other, out, unit);
    if (algebra.distributes_row_shift) {
      out = std::move(other);
    } else {
      out.notes.push_back(
          "differences from values of a row stay in their products: taking them apart takes "
          "longer");
    }
  } else {
    algebra.distributes_row_shift = false;
  }
  out.algebra = algebra;
  // Copies of operands that no box can bring are made where that gives more kernels.
  algebra.gathers = true;
  const auto gathered = lower_with_algebra(program, context, algebra);
  if (gathered && *gathered != out.unscheduled) {
    FirstSchedule other = schedule_of(*gathered, unit);
    if (other.kernels.size() > out.kernels.size()) {
      other.notes.insert(other.notes.begin(),
                         "operands that no box can bring as they lie are copied first");
      other.algebra = algebra;
      out = std::move(other);
    }
  }
  describe(out, program);
  complete(out, unit);
  return out;
}

namespace {

// The forms of the algebra that a schedule may mean: the one it names; any of them where it names
// none, the plainest first.
std::vector<Algebra> forms_for(const schedule::Schedule& decisions) {
  std::vector<Algebra> out;
  for (const bool gathers : {false, true}) {
    for (const bool distributes_row_shift : {false, true}) {
      bool fits = true;
      for (const ir::Op& line : decisions.lines) {
        const auto* a = line.get<decision::Algebra>();
        const bool is_on = a && a->use == decision::Switch::On;
        if (a)
          fits &=
              is_on == (a->rewrite == decision::Rewrite::Gather ? gathers : distributes_row_shift);
      }
      if (fits) out.push_back({distributes_row_shift, gathers});
    }
  }
  return out;
}

std::string refuse_program(const ir::Program& program, const schedule::Schedule& decisions) {
  if (decisions.program != program.name)
    return fmt::format("the schedule is for @{}, the program is @{}", decisions.program,
                       program.name);
  const std::string equations = spec::equations_hash(program);
  if (decisions.equations.empty() || decisions.equations == equations) return "";
  return fmt::format("the schedule is for equations with hash {}, these have {}",
                     decisions.equations, equations);
}

}  // namespace

std::optional<FirstSchedule> replay(const ir::Program& program, const schedule::Schedule& decisions,
                                    Unit& unit, std::string* error) {
  *error = refuse_program(program, decisions);
  if (!error->empty()) return std::nullopt;
  ir::PassContext context{unit.pool, unit.sink, {}};
  for (const Algebra& algebra : forms_for(decisions)) {
    const auto lowered = lower_with_algebra(program, context, algebra);
    if (!lowered) return std::nullopt;
    auto built = schedule::apply_schedule(*lowered, decisions, unit.pool);
    if (!built) {
      if (error->empty()) *error = built.rejection().message;
      continue;
    }
    verify_scheduled(built->program, unit);
    error->clear();
    return FirstSchedule{*lowered, decisions, built->program, built->notes, built->nests,
                         {},       {},        algebra};
  }
  return std::nullopt;
}

std::string refused_lines(const FirstSchedule& schedule, Unit& unit) {
  diag::Sink sink(unit.sources);
  ir::PassContext context{unit.pool, sink, {}};
  if (compile::nests_to_kernels(schedule.program, context)) return "";
  return sink.all().empty() ? "it has no kernel" : sink.all()[0].message;
}

namespace {

// The line in every way of every kernel of tiles.
void ask_for(const decision::Reference& line, schedule::Schedule& changed) {
  for (auto& kernel : changed.kernels) {
    for (ir::Block& alternative : kernel.alternatives) {
      const bool is_tile = std::any_of(
          alternative.begin(), alternative.end(),
          [](const ir::Op& op) { return op.is<decision::Stream>() || op.is<decision::Tile>(); });
      if (is_tile) schedule::complete(alternative, {ir::make(line)});
    }
  }
}

}  // namespace

std::optional<std::string> edited_schedule(const ir::Program& program, const ScheduleEdit& edit,
                                           Unit& unit) {
  std::optional<int64_t> parts;
  if (!edit.parts.empty() && edit.parts != "fill") {
    int64_t n = 0;
    const auto r = std::from_chars(edit.parts.data(), edit.parts.data() + edit.parts.size(), n);
    if (r.ec == std::errc()) parts = n;
  }
  const bool is_combine =
      edit.combine.empty() || edit.combine == "kernel" || edit.combine == "last";
  if ((!parts && !edit.parts.empty() && edit.parts != "fill") || !is_combine) {
    unit.sink.report(diag::Code::BadPass, {},
                     "parts are a number or `fill`, put together by `kernel` or `last`");
    return std::nullopt;
  }
  using decision::ReferenceKind;
  const auto& alternatives = decision::words(ReferenceKind{});
  const auto reference = std::find(alternatives.begin(), alternatives.end(), edit.reference);
  if (reference == alternatives.end() && !edit.reference.empty()) {
    unit.sink.report(diag::Code::BadPass, {}, "a reference is `follow`, `lazy` or `speculative`");
    return std::nullopt;
  }
  const auto first = first_schedule(program, unit);
  if (!first) return std::nullopt;
  schedule::Schedule changed = first->decisions;
  // Only what kernels are made of stays: the passes decide anew.
  changed.kernels = schedule::to_schedule(first->kernels, schedule::By::Auto);
  for (size_t k = 0; k < changed.kernels.size(); ++k) {
    ir::Block& lines = changed.kernels[k].alternatives[0];
    decision::Split split{first->kernels[k].fusion.stream.name(), {}, {}, {}};
    bool is_split = !edit.parts.empty();
    for (const ir::Op& line : lines) {
      if (const auto* s = line.get<decision::Split>()) {
        split = *s;
        is_split = true;
      }
    }
    if (!is_split) continue;
    if (!edit.parts.empty()) {
      split.parts = parts;
      changed.kernels[k].alternatives.resize(1);
    }
    if (!edit.combine.empty())
      split.combine =
          edit.combine == "last" ? decision::CombineKind::Last : decision::CombineKind::Kernel;
    split.by = schedule::By::User;
    // Parts of a tile are not alike: its groups do not alternate.
    for (ir::Op& line : lines) {
      const auto* groups = line.get<decision::Groups>();
      if (groups && groups->kind == decision::GroupKind::Alternating)
        line = ir::make(decision::Groups{1, decision::GroupKind::Sharing, {}});
    }
    schedule::complete(lines, {ir::make(split)});
  }
  if (reference != alternatives.end())
    ask_for({static_cast<ReferenceKind>(reference - alternatives.begin()), {}, schedule::By::User},
            changed);
  return schedule::print(changed);
}

std::optional<std::string> check_scheduled(const ir::Program& program, const ir::Program& scheduled,
                                           const RunRequest& request, Unit& unit) {
  const auto env = prepare(program, request, unit);
  if (!env) return std::nullopt;
  const auto want = oracle_results(program, *env, request, unit);
  if (!want) return std::nullopt;
  const auto got = scalar::interpret(scheduled, *env, scalar::Arithmetic::Declared, unit.sink);
  if (!got) return std::nullopt;
  for (const auto& [name, result] : *want) {
    const std::string why = objection(got->at(name), result, program, request);
    if (!why.empty()) return fmt::format("`{}`: scheduled, {}", name, why);
  }
  return "";
}

}  // namespace nautilus::driver

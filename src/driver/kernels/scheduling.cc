// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/scheduling.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/kernels.h"
#include "decision/lines.h"
#include "driver/kernels/program_lines.h"
#include "driver/kernels/tile_kernels.h"
#include "lower/places/scatter_nests.h"
#include "lower/program_nests.h"
#include "scalar/interp.h"
#include "schedule/apply/apply.h"
#include "schedule/apply/dependent_lines.h"
#include "schedule/text/schedule.h"
#include "spec/equations_hash.h"

namespace nautilus::driver {

namespace {

using decision::Rewrite;

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
  schedule.made = compile::nests_to_kernels(schedule.program, context);
  if (!schedule.made) return;
  complete(schedule, decided);
  schedule.decided = std::move(decided);
}

void complete(FirstSchedule& schedule, const ir::Block& decided) {
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

bool may_scatter(const ir::Program& lowered, Unit& unit) {
  const lower::ProgramNests state = lower::program_nests(lowered, unit.pool);
  return std::ranges::any_of(state.nests, [&](const lower::MapNest& nest) {
    return lower::scatter_nests(nest, state.buffers, unit.pool).has_value();
  });
}

std::optional<FirstSchedule> schedule_without_trial(const ir::Program& program, Unit& unit) {
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  const auto lowered = unit.forms.get(program, context);
  if (!lowered) return std::nullopt;
  for (const Rewrite rewrite :
       {Rewrite::DistributeRowShift, Rewrite::Gather, Rewrite::Limbs, Rewrite::Groups,
        Rewrite::Chunks, Rewrite::Pieces, Rewrite::Ranks}) {
    if (unit.forms.get(program, context, Algebra().with(rewrite)) != lowered) return std::nullopt;
  }
  if (unit.forms.get(program, context, Algebra().without(Rewrite::Sums)) != lowered)
    return std::nullopt;
  const auto inside = unit.forms.get(program, context, Algebra().without(Rewrite::Masks));
  if (inside && *inside != *lowered && may_scatter(*inside, unit)) return std::nullopt;
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  return with_tile_kernels(*lowered, false, unit);
}

FirstSchedule schedule_loops(const ir::Program& loops, bool is_tried, Unit& unit) {
  const base::StageScope stage(fmt::format("scheduling @{}", loops.name),
                               "nautilus schedule <the program>");
  return with_tile_kernels(loops, is_tried, unit);
}

std::optional<FirstSchedule> replay(const ir::Program& program, const schedule::Schedule& given,
                                    Unit& unit, std::string* error) {
  const schedule::Schedule decisions = schedule::without_dependents(given);
  *error = refuse_program(program, decisions);
  if (!error->empty()) return std::nullopt;
  const ir::Program asked = with_operand_lines(program, decisions);
  std::string no_form;  // why one is not what the lines about the program say; others may be
  for (const Algebra& algebra : forms_for(decisions)) {
    diag::Sink sink(unit.sources);
    ir::Block decided;
    ir::PassContext context{unit.pool, asked == program ? unit.sink : sink, {}};
    context.decided = &decided;
    const auto lowered = unit.forms.get(asked, context, algebra);
    if (!lowered && asked == program) return std::nullopt;
    std::string why =
        lowered ? refuse_idle(decisions, algebra, asked, *lowered, unit) : sink.all()[0].message;
    if (why.empty()) why = refuse_unstored(decisions, *lowered);
    if (!why.empty()) {
      no_form = why;
      continue;
    }
    auto built = schedule::apply_schedule(*lowered, decisions, unit.pool);
    why = built ? refuse_order(decisions, built->program) : built.rejection().message;
    if (!why.empty()) {
      if (error->empty()) *error = why;
      continue;
    }
    check_verifies(built->program, unit);
    error->clear();
    FirstSchedule out{*lowered, decisions, built->program, built->notes, built->nests, {}, {}};
    out.decisions.program = program.name;  // that of the text may be an earlier one
    out.decisions.equations = spec::equations_hash(program);  // one of version 1 has none
    out.algebra = algebra;
    out.replayed = built->kernels;
    out.rounded = built->rounded;
    add_algebra(out, asked, unit);
    add_stored(decided, out);
    return out;
  }
  if (error->empty()) *error = no_form;
  return std::nullopt;
}

std::string refused_lines(const FirstSchedule& schedule, Unit& unit) {
  diag::Sink sink(unit.sources);
  ir::PassContext context{unit.pool, sink, {}};
  if (compile::nests_to_kernels(schedule.program, context)) return "";
  return sink.all().empty() ? "it has no kernel" : sink.all()[0].message;
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

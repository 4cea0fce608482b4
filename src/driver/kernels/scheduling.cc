// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/scheduling.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/kernels.h"
#include "decision/lines.h"
#include "driver/kernels/program_lines.h"
#include "driver/kernels/tile_kernels.h"
#include "ir/target_of.h"
#include "scalar/interp.h"
#include "schedule/apply/apply.h"
#include "schedule/choose/plan_cost.h"
#include "schedule/text/schedule.h"
#include "spec/equations_hash.h"
#include "spec/passes/algebra/chunk_scans.h"
#include "spec/scans.h"

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

namespace {

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
  const auto lowered = unit.forms.get(program, context);
  if (!lowered) return std::nullopt;
  for (const Rewrite rewrite : {Rewrite::DistributeRowShift, Rewrite::Gather, Rewrite::Limbs,
                                Rewrite::Groups, Rewrite::Chunks}) {
    if (unit.forms.get(program, context, Algebra().with(rewrite)) != lowered) return std::nullopt;
  }
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  return with_tile_kernels(*lowered, false, unit);
}

FirstSchedule schedule_loops(const ir::Program& loops, bool is_tried, Unit& unit) {
  const base::StageScope stage(fmt::format("scheduling @{}", loops.name),
                               "nautilus schedule <the program>");
  return with_tile_kernels(loops, is_tried, unit);
}

namespace {

// Of a program that brings lines about operands, as dumps on the way do: the first form of the
// algebra that has these operands.
std::optional<FirstSchedule> schedule_with_own_lines(const ir::Program& program, Unit& unit) {
  ir::Program plain = program;
  plain.body = decision::with_lines(std::move(plain.body), {});
  const schedule::Schedule given{
      program.name, spec::equations_hash(program), decision::lines(program.body), {}};
  std::string error;
  auto out = replay_schedule(plain, schedule::print(given), unit, &error);
  if (!out) {
    if (!error.empty()) unit.sink.report(diag::Code::DecisionRefused, {}, error);
    return std::nullopt;
  }
  describe(*out, program, unit);
  complete(*out, unit);
  return out;
}

// Why scans are computed one step after the other, whatever that takes.
std::vector<std::string> sequential_scans(const ir::Program& program, Unit& unit) {
  if (!program.after.empty() || !spec::has_scans(program)) return {};
  diag::Sink ignored(unit.sources);
  ir::PassContext context{unit.pool, ignored, {}};
  ir::Program split = program;
  for (const std::string_view name : {"simplify", "inline_conditions", "split_reductions"}) {
    auto next = compile::run_pass(*compile::find_pass(name), split, context);
    if (!next) return {};
    split = std::move(*next);
  }
  return spec::chunk_refusals(split, unit.pool);
}

}  // namespace

std::optional<FirstSchedule> first_schedule(const ir::Program& program, Unit& unit) {
  if (!decision::lines(program.body).empty()) return schedule_with_own_lines(program, unit);
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto lowered = unit.forms.get(program, context);
  if (!lowered) return std::nullopt;
  const base::StageScope stage(fmt::format("scheduling @{}", program.name),
                               "nautilus schedule <the program>");
  FirstSchedule out = with_tile_kernels(*lowered, true, unit);
  Algebra algebra;
  const Algebra shifting = algebra.with(Rewrite::DistributeRowShift);
  if (const auto apart = unit.forms.get(program, context, shifting); apart && *apart != *lowered) {
    FirstSchedule other = with_tile_kernels(*apart, true, unit);
    if (is_better_apart(other, out, unit)) {
      algebra = shifting;
      out = std::move(other);
    } else {
      out.notes.push_back(
          "differences from values of a row stay in their products: taking them apart takes "
          "longer");
    }
  }
  out.algebra = algebra;
  // Copies of operands that no box can bring are made where that gives more kernels, products of
  // limbs where matrix instructions gain more than limbs cost.
  const auto consider = [&](Algebra form, std::string_view note) {
    const auto lowered_so = unit.forms.get(program, context, form);
    const Rewrite tried = form.has(Rewrite::Chunks)   ? Rewrite::Chunks
                          : form.has(Rewrite::Gather) ? Rewrite::Gather
                          : form.has(Rewrite::Limbs)  ? Rewrite::Limbs
                                                      : Rewrite::Groups;
    if (!lowered_so || *lowered_so == out.unscheduled ||
        lowered_so == unit.forms.get(program, context, form.without(tried)))
      return;
    FirstSchedule other = with_tile_kernels(*lowered_so, true, unit);
    // Sums of groups are scalar code, too, whose points share what they load.
    const bool is_scalar =
        form.has(Rewrite::Groups) && out.kernels.empty() && other.kernels.empty();
    if (!is_scalar && other.kernels.size() <= out.kernels.size()) return;
    // Products that are fused stand in fewer kernels: groups are for sums that have no tiles yet.
    if (!is_scalar && form.has(Rewrite::Groups) && counts(other).products <= counts(out).products)
      return;
    const double share = predicted_cost(other, unit) / predicted_cost(out, unit);
    const bool has_new_limbs = form.has(Rewrite::Limbs) && !out.algebra.has(Rewrite::Limbs);
    const double worth =
        has_new_limbs || is_scalar ? ir::target_of(out.program).algebra.worth_limbs : 1;
    if (share >= worth) {
      if (share < 1 && has_new_limbs)
        out.notes.push_back(
            fmt::format("products of f32 operands are scalar code: products of 16-bit limbs are "
                        "predicted to take {:.2g} of the time, and usually take longer",
                        share));
      if (form.has(Rewrite::Chunks))
        out.notes.push_back(
            fmt::format("scans are computed one step after the other: chunks of their steps are "
                        "predicted to take {:.2g} of the time",
                        share));
      return;
    }
    if (!note.empty()) other.notes.insert(other.notes.begin(), std::string(note));
    if (form.has(Rewrite::Limbs))
      other.notes.insert(other.notes.begin(),
                         fmt::format("products of f32 operands are products of 16-bit limbs: "
                                     "predicted to take {:.2g} of the time of scalar code",
                                     share));
    if (form.has(Rewrite::Groups))
      other.notes.insert(other.notes.begin(),
                         fmt::format("sums that are products of matrices within groups of an axis "
                                     "are products of each group: predicted to take {:.2g} of the "
                                     "time without",
                                     share));
    if (form.has(Rewrite::Chunks))
      other.notes.insert(other.notes.begin(),
                         fmt::format("scans of matrices are products of chunks of their steps: "
                                     "predicted to take {:.2g} of the time of one step after the "
                                     "other",
                                     share));
    other.algebra = form;
    out = std::move(other);
  };
  constexpr std::string_view kGathered =
      "operands that no box can bring as they lie are copied first";
  const Algebra gathering = algebra.with(Rewrite::Gather);
  consider(algebra.with(Rewrite::Limbs), "");
  consider(gathering.with(Rewrite::Limbs, out.algebra.has(Rewrite::Limbs)), kGathered);
  if (!out.algebra.has(Rewrite::Limbs)) consider(gathering.with(Rewrite::Limbs), kGathered);
  const Algebra grouped = algebra.with(Rewrite::Groups);
  const bool may_split_groups =
      unit.forms.changes(compile::pass_of(Rewrite::Groups), program, context, grouped);
  // Groups that are blocks of rows are tiles already, and stay in one kernel with what follows.
  const bool has_blocks =
      std::any_of(out.kernels.begin(), out.kernels.end(), [](const schedule::Kernel& k) {
        return k.fusion.row_block > 0 && !k.fusion.block_rows.is_int(1);
      });
  if (may_split_groups && !has_blocks) {
    for (const bool has_limbs : {false, true})
      consider(grouped.with(Rewrite::Limbs, has_limbs), "");
  }
  const Algebra chunked = out.algebra.with(Rewrite::Chunks);
  if (unit.forms.changes(compile::pass_of(Rewrite::Chunks), program, context, chunked))
    consider(chunked, "");
  for (std::string& why : sequential_scans(program, unit)) out.notes.push_back(std::move(why));
  describe(out, program, unit);
  complete(out, unit);
  return out;
}

std::optional<FirstSchedule> replay(const ir::Program& program, const schedule::Schedule& decisions,
                                    Unit& unit, std::string* error) {
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
    out.decisions.equations = spec::equations_hash(program);  // one of version 1 has none
    out.algebra = algebra;
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

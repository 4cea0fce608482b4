// SPDX-License-Identifier: Apache-2.0
#include "compile/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "compile/kernels.h"
#include "compile/levels.h"
#include "decision/lines.h"
#include "ir/print.h"

namespace nautilus::compile {

void trace(const PassInfo& pass, const ir::Program& program, ir::PassContext& context,
           std::string label, double ms) {
  if (!context.trace) return;
  ir::Program copy = program;
  copy.after = label.empty() ? std::string(pass.name) : std::move(label);
  context.trace->steps.push_back({program.name, pass.name, std::move(copy), ms});
}

std::optional<ir::Program> apply(const PassInfo& pass, const ir::Program& program,
                                 ir::PassContext& context, std::string label) {
  NAUT_CHECK(pass.run, "pass {} is no function of a program", pass.name);
  const base::StageScope stage(
      fmt::format("running pass {} on @{}", pass.name, program.name),
      fmt::format("nautilus opt --pass {} <dump of the program before it>", pass.name));
  const auto begin = std::chrono::steady_clock::now();
  auto result = pass.run(program, context);
  if (result && context.trace && !(*result == program)) {
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    trace(pass, *result, context, std::move(label), took.count());
  }
  return result;
}

namespace {

void check_result(const PassInfo& pass, const ir::Program& program,
                  const ir::PassContext& context) {
  diag::Sink sink(context.sink.sources());
  const bool ok = verify(program, sink);
  NAUT_CHECK(ok, "pass {} made a program that does not verify: {}\n{}", pass.name,
             sink.all()[0].message, ir::print(program));
}

}  // namespace

std::optional<ir::Program> run_pass(const PassInfo& pass, const ir::Program& program,
                                    ir::PassContext& context, std::string label) {
  if (pass.from != program.level->name) {
    context.sink.report(diag::Code::BadPass, {},
                        fmt::format("pass `{}` takes level {}, the program is at level {}",
                                    pass.name, pass.from, program.level->name));
    return std::nullopt;
  }
  auto result = apply(pass, without_after(program), context, std::move(label));
  if (result) check_result(pass, *result, context);
  return result;
}

namespace {

// A sequence may contain a pass several times; the second is `merge_equal 2`.
std::vector<std::string> labels(const std::vector<std::string_view>& names) {
  std::vector<std::string> out;
  for (size_t k = 0; k < names.size(); ++k) {
    const auto times =
        std::count(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(k) + 1, names[k]);
    out.push_back(times > 1 ? fmt::format("{} {}", names[k], times) : std::string(names[k]));
  }
  return out;
}

std::optional<ir::Program> run_equations(const std::vector<std::string_view>& names, size_t begin,
                                         const ir::Program& program, ir::PassContext& context) {
  const std::vector<std::string> label = labels(names);
  ir::Program current = program;
  uint32_t known = kNone;
  for (size_t k = 0; k < names.size(); ++k) {
    const PassInfo& pass = the_pass(names[k]);
    NAUT_CHECK((pass.needs & ~known) == 0, "pass {} stands before what it needs", pass.name);
    known |= pass.gives;
    if (k < begin) continue;
    auto next = run_pass(pass, current, context, label[k]);
    if (!next) return std::nullopt;
    current = std::move(*next);
  }
  return run_pass(the_pass("spec_to_scalar"), current, context);
}

// With whatever some form has no use for.
std::vector<std::string_view> sequence(Algebra algebra) {
  // A scale that leaves the reduction of an output needs an equation: split again.
  std::vector<std::string_view> names = {"simplify",
                                         "inline_conditions",
                                         "exchange_sums",
                                         "split_groups",
                                         "split_residues",
                                         "stride_sums",
                                         "join_sums",
                                         "unroll_sums",
                                         "split_reductions",
                                         "chunk_scans",
                                         "scan_prefixes",
                                         "drop_row_constant",
                                         "push_extremes",
                                         "argmax_by_extremes",
                                         "nest_sums",
                                         "reduce_pieces",
                                         "merge_equal",
                                         "rank_pieces",
                                         "pull_scale",
                                         "split_reductions",
                                         "hoist_operand_masks",
                                         "defer",
                                         "base2",
                                         "join_scalars",
                                         "simplify",
                                         "integer_sums",
                                         "narrow_operands",
                                         "store_operands",
                                         "tabulate",
                                         "store_narrow",
                                         "byte_operands",
                                         "merge_equal",
                                         "inline_terms",
                                         "drop_unused"};
  if (!algebra.has(Rewrite::Groups)) std::erase(names, "split_groups");
  if (!algebra.has(Rewrite::Residues)) std::erase(names, "split_residues");
  if (!algebra.has(Rewrite::Narrow)) std::erase(names, "narrow_operands");
  if (!algebra.has(Rewrite::Chunks)) std::erase(names, "chunk_scans");
  if (!algebra.has(Rewrite::Pieces)) std::erase(names, "reduce_pieces");
  if (!algebra.has(Rewrite::Sums)) std::erase(names, "unroll_sums");
  if (!algebra.has(Rewrite::Tables)) std::erase(names, "tabulate");
  if (!algebra.has(Rewrite::Masks)) std::erase(names, "hoist_operand_masks");
  if (!algebra.has(Rewrite::Ranks)) std::erase(names, "rank_pieces");
  if (!algebra.has(Rewrite::Extremes)) std::erase(names, "argmax_by_extremes");
  if (algebra.has(Rewrite::DistributeRowShift))
    names.insert(std::find(names.begin(), names.end(), "defer"), "distribute_row_shift");
  if (algebra.has(Rewrite::Limbs))
    names.insert(std::find(names.begin(), names.end(), "store_operands"), "split_operands");
  if (algebra.has(Rewrite::Gather))
    names.insert(names.end(), {"gather_operands", "merge_equal", "drop_unused"});
  return names;
}

// All of them: the program itself shows which rewrites were used.
std::vector<std::string_view> every_pass() { return sequence(every_rewrite()); }

// The number of passes of the sequence that a program which comes from `after` has gone through.
// Positions are those of the longest sequence: the program itself shows which rewrites were used.
size_t position_after(const std::vector<std::string_view>& names, const std::string& after) {
  if (after.empty()) return 0;
  const auto all = every_pass();
  const auto known = labels(all);
  const auto done = std::find(known.begin(), known.end(), after) - known.begin() + 1;
  size_t position = 0;
  for (auto it = all.begin(); it != all.end() && it - all.begin() < done && position < names.size();
       ++it) {
    if (*it == names[position]) ++position;
  }
  return position;
}

}  // namespace

std::vector<std::string_view> algebra_sequence(Algebra algebra) {
  std::vector<std::string_view> names = sequence(algebra);
  // Taps are further steps of one kernel; written out, each would be six products of its own.
  if (algebra.has(Rewrite::Limbs)) std::erase(names, "unroll_sums");
  return names;
}

std::optional<ir::Program> lower_with_algebra(const ir::Program& program, ir::PassContext& context,
                                              Algebra algebra) {
  const auto names = algebra_sequence(algebra);
  return run_equations(names, position_after(names, program.after), program, context);
}

std::optional<ir::Program> LoweredForms::get(const ir::Program& program, ir::PassContext& context,
                                             Algebra algebra) {
  // Recorded steps are always run, and so is the rest of a program between passes.
  if (context.trace || !program.after.empty() || !context.disabled_rules.empty())
    return lower_with_algebra(program, context, algebra);
  const auto known = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const OfProgram& p) { return p.program == program; });
  OfProgram& own =
      known == programs_.end() ? programs_.emplace_back(OfProgram{program, {}}) : *known;
  std::vector<std::string_view> names = algebra_sequence(algebra);
  names.emplace_back("spec_to_scalar");
  const ir::Program* current = &own.program;
  std::vector<std::string_view> done;
  for (std::string_view name : names) {
    done.push_back(name);
    auto it = own.after.find(done);
    if (it == own.after.end()) {
      ir::Block decided;
      ir::PassContext noting = context.with(context.sink, decided);
      auto next = run_pass(the_pass(name), *current, noting);
      if (!next) return std::nullopt;
      it = own.after.emplace(done, Step{std::move(*next), std::move(decided)}).first;
    }
    for (const ir::Op& line : it->second.decided) decision::note(line, context);
    current = &it->second.program;
  }
  return *current;
}

bool LoweredForms::changes(std::string_view pass, const ir::Program& program,
                           ir::PassContext& context, Algebra algebra) {
  if (!program.after.empty()) return false;
  ir::PassContext quiet{context.pool, context.sink, {}};
  if (!get(program, quiet, algebra)) return false;
  const auto& after = std::find_if(programs_.begin(), programs_.end(), [&](const OfProgram& p) {
                        return p.program == program;
                      })->after;
  const auto names = algebra_sequence(algebra);
  const auto at = std::find(names.begin(), names.end(), pass);
  if (at == names.end()) return false;
  const std::vector<std::string_view> before(names.begin(), at);
  std::vector<std::string_view> with = before;
  with.push_back(pass);
  const ir::Program& without = before.empty() ? program : after.at(before).program;
  return !(after.at(with).program == without);
}

std::optional<ir::Program> lower_to(std::string_view level, const ir::Program& program,
                                    ir::PassContext& context) {
  std::optional<ir::Program> current = program;
  if (current->level->name == "spec" && level != "spec")
    current = run_equations({"simplify", "split_reductions", "merge_equal", "drop_unused"}, 0,
                            program, context);
  if (current && current->level->name == "scalar" && level == "vrtile")
    current = run_pass(the_pass("scalar_to_vrtile"), *current, context);
  if (current && current->level->name != "spec" && level == "matile")
    current = to_kernels(*current, context);
  if (current && current->level->name != level) {
    context.sink.report(
        diag::Code::BadPass, {},
        fmt::format("level {} cannot be lowered to level {}", program.level->name, level));
    return std::nullopt;
  }
  return current;
}

bool verify_after(const ir::Program& program, diag::Sink& sink) {
  if (program.after.empty()) return true;
  const std::string_view level = program.level->name;
  const auto equations = labels(every_pass());
  if (level == "spec" &&
      std::find(equations.begin(), equations.end(), program.after) != equations.end())
    return true;
  const PassInfo* pass = find_pass(program.after);
  if (pass && level != "spec" && pass->to == level && pass->stage != Stage::Apart) return true;
  auto& d = sink.report(
      diag::Code::BadPass, {},
      fmt::format("no pass `{}` is on the way to programs of level {}", program.after, level));
  const std::string near = nearest_pass(program.after);
  d.with_help(pass || near.empty() || near == program.after
                  ? "`nautilus opt --list` shows the passes"
                  : fmt::format("did you mean `{}`?", near));
  return false;
}

std::string label_after(const ir::Program& before, const PassInfo& pass) {
  if (before.after.empty() || pass.stage == Stage::Apart) return "";
  if (pass.stage != Stage::Equations) return std::string(pass.name);
  // The next one of that name.
  const auto names = every_pass();
  const auto known = labels(names);
  const auto at = std::find(known.begin(), known.end(), before.after) - known.begin();
  for (size_t k = static_cast<size_t>(at) + 1; k < names.size(); ++k) {
    if (names[k] == pass.name) return known[k];
  }
  return before.after;
}

ir::Program without_after(ir::Program program) {
  program.after.clear();
  return program;
}

}  // namespace nautilus::compile

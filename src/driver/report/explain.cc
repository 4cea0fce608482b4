// SPDX-License-Identifier: Apache-2.0
#include "driver/report/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "diag/diagnostic.h"
#include "diag/render.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/sized_kernels.h"
#include "driver/report/summary.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "ir/walk.h"
#include "matile/ops.h"
#include "matile/resources.h"
#include "schedule/choose/candidates.h"
#include "schedule/text/schedule.h"
#include "spec/ops.h"

namespace nautilus::driver {
namespace {

std::string indented(const std::string& text, std::string_view by) {
  std::string out;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) out += std::string(by) + text.substr(begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
  return out;
}

// The equations of a program that `before` does not have.
std::string new_equations(const ir::Program& program, const std::string& before) {
  std::string out;
  for (const ir::Op& op : program.body) {
    if (!op.is<spec::Let>()) continue;
    std::string line = ir::print(op);
    if (!line.ends_with('\n')) line += '\n';
    if (before.find(line) == std::string::npos) out += "  " + line;
  }
  return out;
}

// The last loop of a role with products: steps without a mask follow those with one.
const matile::Loop* main_loop(const matile::Role& role) {
  const matile::Loop* found = nullptr;
  ir::for_each_op(role.body, [&](const ir::Op& op) {
    const auto* loop = op.get<matile::Loop>();
    if (!loop) return;
    bool has_product = false;
    ir::for_each_op(loop->body,
                    [&](const ir::Op& inner) { has_product |= inner.is<matile::Dot>(); });
    if (has_product) found = loop;
  });
  return found;
}

std::string roles_text(const matile::Kernel& kernel, const matile::Resources& r) {
  std::string out =
      fmt::format("  {}: {} threads, {} of {} bytes of shared memory{}\n", kernel.name.str(),
                  r.threads, r.shared_bytes, r.target->limits.cta_shared_bytes,
                  r.cluster > 1 ? fmt::format(", clusters of {}", r.cluster) : "");
  for (const matile::RingInfo& ring : r.rings) {
    out += fmt::format(
        "    {} fills {}: {} of {} bytes{}\n", ring.filler ? ring.filler->name.str() : "nobody",
        ring.op->name.str(), diag::counted(static_cast<size_t>(ring.slots()), "slot", "slots"),
        ring.slot_bytes, ring.copies > 1 ? fmt::format(" for each of {} groups", ring.copies) : "");
  }
  for (const matile::RoleInfo& role : r.roles) {
    if (!role.is_compute()) continue;
    out += fmt::format("    {} has {} of 128 threads with {} registers\n", role.op->name.str(),
                       diag::counted(static_cast<size_t>(role.groups()), "group", "groups"),
                       role.op->regs.value_or(0));
  }
  return out;
}

// For each kernel with products its roles; for the first also its main loop.
std::string kernels_text(const ir::Program& kernels) {
  std::string out;
  bool is_first = true;
  for (const ir::Op& op : kernels.body) {
    const auto* kernel = op.get<matile::Kernel>();
    if (!kernel) continue;
    for (const ir::Op& inner : kernel->body) {
      const auto* role = inner.get<matile::Role>();
      const matile::Loop* loop = role ? main_loop(*role) : nullptr;
      if (!loop) continue;
      out += roles_text(*kernel, matile::resources_of(*kernel, ir::target_of(kernels)));
      if (!is_first) continue;
      is_first = false;
      out += fmt::format("    the last loop of {}, as it is emitted:\n", role->name.str());
      out += indented(ir::print(ir::make(*loop)), "      ");
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> derivation(const ir::Program& program, const FirstSchedule& scheduled,
                                      const ir::Program& kernels, Unit& unit) {
  ir::PassContext context{unit.pool, unit.sink, {}};
  std::string out = "equations:\n" + new_equations(program, "");
  ir::Program current = with_operand_lines(program, scheduled.decisions);
  std::string text = ir::print(current);
  for (std::string_view name : compile::algebra_sequence(scheduled.algebra)) {
    const compile::PassInfo& pass = compile::the_pass(name);
    auto next = compile::run_pass(pass, current, context);
    if (!next) return std::nullopt;
    current = std::move(*next);
    const std::string after = ir::print(current);
    if (after == text) continue;
    const std::string changed = new_equations(current, text);
    if (!changed.empty())
      out += fmt::format("{}: {} ({})\n{}", name, pass.summary,
                         pass.is_exact ? "exact" : "exact over the reals", changed);
    text = after;
  }
  out += schedule::print(scheduled.decisions);
  for (const std::string& n : scheduled.notes) out += n + "\n";
  if (!scheduled.kernels.empty()) {
    for (const std::string& n : schedule::explain_candidates(
             scheduled.kernels, scheduled.rounded, ir::target_of(scheduled.rounded), unit.pool))
      out += n + "\n";
  }
  const std::string loops = kernels_text(kernels);
  if (!loops.empty())
    out += "kernels with products; the plan launches the cheapest for its sizes:\n";
  return out + loops;
}

namespace {

// Several schedules for different sizes are shown separately.
std::optional<std::string> explain_sized(const ir::Program& program, const ExplainRequest& request,
                                         Unit& unit, std::string* error) {
  const auto list = sized_schedules(program, *request.schedule, unit, error);
  if (!list) return std::nullopt;
  std::string out;
  for (size_t k = 0; k < list->size(); ++k) {
    out += fmt::format("schedule {} of {}\n", k + 1, list->size());
    for (const ir::Op& line : (*list)[k].at) out += ir::print(line) + "\n";
    ExplainRequest own = request;
    own.schedule = schedule::print((*list)[k].schedule);
    const auto text = explain(program, own, unit, error);
    if (!text) return std::nullopt;
    out += *text;
  }
  return out;
}

}  // namespace

std::optional<std::string> explain(const ir::Program& program, const ExplainRequest& request,
                                   Unit& unit, std::string* error) {
  if (request.schedule && schedule::is_sized(*request.schedule))
    return explain_sized(program, request, unit, error);
  ir::PassTrace trace;
  std::string out;
  std::optional<FirstSchedule> first;
  std::optional<Kernels> kernels;
  const bool has_derivation = request.has_derivation && program.level->name == "spec";
  if (has_derivation && !request.schedule) {
    first = first_schedule(program, unit);
    if (!first) return std::nullopt;
    kernels = explained_kernels(program, *first, trace, unit);
  }
  if (!kernels)
    kernels = make_kernels(program, {.schedule = request.schedule, .trace = &trace}, unit, error);
  if (!kernels) return std::nullopt;
  if (request.warnings && program.level->name == "spec")
    report_warnings(program, *kernels, *request.warnings, unit);
  const auto facts = request.has_summary ? program_facts(program, *kernels, unit) : std::nullopt;
  if (facts) out += "summary " + summary_text(kernels->program, *facts);
  if (has_derivation) {
    if (request.schedule) first = replay_schedule(program, *request.schedule, unit, error);
    auto text = first ? derivation(program, *first, kernels->program, unit) : std::nullopt;
    if (!text) return std::nullopt;
    out += *text;
  }
  if (!request.has_passes) return out;
  const auto passes = passes_text(program, trace, *kernels, request.passes, error);
  if (!passes) return std::nullopt;
  if (!out.empty())
    out +=
        "passes; the program after each is a file of `nautilus print --level matile --dump-dir "
        "DIR`, what each is for stands in `nautilus opt --list`:\n";
  return out + *passes;
}

std::string fusion(const ir::Program& program, Unit& unit) {
  const auto first = first_schedule(program, unit);
  if (!first) return diag::render_all(unit.sink);
  std::string out;
  for (const std::string& n : first->notes) out += n + "\n";
  return out;
}

}  // namespace nautilus::driver

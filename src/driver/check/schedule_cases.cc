// SPDX-License-Identifier: Apache-2.0
// Cases about schedules: the first one, given ones, their derivation, what a sweep tries.
#include <fmt/format.h>

#include <map>

#include "base/files.h"
#include "driver/check/case_options.h"
#include "driver/check/case_runner.h"
#include "driver/check/emulated_check.h"
#include "driver/check/hide_costs.h"
#include "driver/check/regenerate.h"
#include "driver/kernels/given_schedule.h"
#include "driver/kernels/sized_kernels.h"
#include "driver/kernels/sweep.h"
#include "driver/load/hints.h"
#include "driver/oracle/oracle_check.h"
#include "driver/report/explain.h"
#include "driver/report/warnings.h"
#include "driver/run/launch_report.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "schedule/text/schedule.h"

namespace nautilus::driver {

namespace {

constexpr size_t kMostShown = 20;  // schedules of a sweep

}  // namespace

CaseResult CaseRunner::regenerate() {
  std::string kernel;
  for (const auto& [name, value] : test_.options) {
    if (name != "kernel") return failed(fmt::format("`regenerate` takes no option `{}`", name));
    kernel = value;
  }
  std::string error;
  const auto difference = regeneration_difference(
      test_.folder + test_.argument, strip_comments(test_.input), kernel, unit_, &error);
  if (!difference) return failed(error.empty() ? rendered() : error);
  return shown(*difference);
}

CaseResult CaseRunner::fill() {
  std::string error;
  const auto text = base::read_file(test_.folder + test_.argument, &error);
  if (!text) return failed(error);
  const auto program = load_text(test_.argument, *text, {}, unit_);
  if (!program) return failed(rendered());
  const auto swept = sweep_holes(*program, test_.input, kMostShown, unit_, &error);
  if (!swept) return shown(error + "\n" + rendered());
  const auto as_it_is = replay_schedule(*program, test_.input, unit_, &error);
  return shown((as_it_is ? "" : error + "\n\n") + without_cycles(sweep_text(*swept, true)));
}

CaseResult CaseRunner::replay_case() {
  std::string error;
  GivenSchedule given{file_, "", test_.input};
  for (const auto& [name, value] : test_.options) {
    if (name != "kernel") return failed(fmt::format("`replay` takes no option `{}`", name));
    given.kernel = value;
  }
  const auto text = base::read_file(test_.folder + test_.argument, &error);
  if (!text) return failed(error);
  const auto program = load_text(test_.argument, *text, {}, unit_);
  if (!program) return failed(rendered());
  const auto schedule = join_schedules({given}, *program, unit_, &error);
  if (schedule && schedule::is_sized(*schedule)) {
    const auto all = complete_sized(*program, *schedule, unit_, &error);
    return shown(all ? *all : error + "\n" + rendered());
  }
  auto scheduled = schedule ? replay_schedule(*program, *schedule, unit_, &error) : std::nullopt;
  if (!scheduled) return shown(error + "\n" + rendered());
  const std::string refused = refused_lines(*scheduled, unit_);
  if (!refused.empty()) return shown(refused + "\n");
  complete(*scheduled, unit_);
  return shown(schedule::print(scheduled->decisions));
}

CaseResult CaseRunner::launches() {
  std::string error;
  const auto text = base::read_file(test_.folder + test_.argument, &error);
  if (!text) return failed(error);
  const auto program = load_text(test_.argument, *text, {}, unit_);
  if (!program) return failed(rendered());
  const auto kernels =
      make_kernels(*program, {.schedule = strip_comments(test_.input)}, unit_, &error);
  if (!kernels) return shown(error + "\n" + rendered());
  std::string out;
  for (const ir::Op& op : kernels->program.body) {
    const auto* let = op.get<matile::Let>();
    if (let && (let->name.str().starts_with("near") || let->name.str().starts_with("far")))
      out += ir::print(op) + "\n";
  }
  for (const auto& options : options_of_runs(test_.options)) {
    RunRequest r;
    if (!read_request(*program, options, r, error)) return failed(error);
    ir::Environment env = r.given;
    if (!ir::complete(kernels->program, {}, env, unit_.sink)) return failed(rendered());
    std::string sizes;
    for (const auto& [name, value] : options)
      sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value);
    const auto sms = static_cast<int>(ir::target_of(*program).board.sms);
    out += sizes + "\n";
    for (const PlannedLaunch& l : planned_launches(kernels->program, env, sms)) {
      if (l.grid > 0) out += fmt::format("  {}: {}\n", l.kernel, l.grid);
    }
    const auto difference = check_emulated(*program, kernels->program, r, unit_);
    if (!difference) return failed(rendered());
    if (!difference->empty()) return failed(fmt::format("{}: {}", sizes, *difference));
  }
  return shown(out);
}

CaseResult CaseRunner::sweep_case(const ir::Program& program) {
  RunRequest r;
  std::string error;
  if (!read_request(program, test_.options, r, error)) return failed(error);
  std::map<std::string, int64_t> sizes(r.given.sizes.begin(), r.given.sizes.end());
  const auto limit = sizes.extract("limit");
  const auto swept = sweep(with_hints(program, sizes), SweepOf::Everything,
                           limit.empty() ? kMostShown : static_cast<size_t>(limit.mapped()), unit_);
  return swept ? shown(with_or_without_cycles(sweep_text(*swept, true))) : failed(rendered());
}

CaseResult CaseRunner::explain_case(const ir::Program& program) {
  ExplainRequest request{.schedule = {},
                         .has_summary = false,
                         .has_derivation = true,
                         .has_passes = false,
                         .passes = {}};
  for (const auto& [name, value] : test_.options) {
    if (name == "kernel") {
      request.passes.kernel = value;
    } else if (name != "passes" || (value != "shown" && value != "programs")) {
      return failed(fmt::format("`explain` takes no option `{}={}`", name, value));
    } else {
      request.has_derivation = false;
      request.has_passes = true;
      request.passes.shows_programs = value == "programs";
    }
  }
  std::string error;
  const auto text = explain(program, request, unit_, &error);
  if (!text) return shown(error.empty() ? rendered() : error + "\n");
  return shown(with_or_without_cycles(*text));
}

CaseResult CaseRunner::summary(const ir::Program& program) {
  ExplainRequest request{.schedule = {},
                         .has_summary = true,
                         .has_derivation = false,
                         .has_passes = false,
                         .passes = {}};
  std::string error;
  const auto text = explain(program, request, unit_, &error);
  return text ? shown(with_or_without_cycles(*text)) : failed(rendered() + error);
}

CaseResult CaseRunner::warnings(const ir::Program& program) {
  WarningRequest request{.tries_static = true};
  for (const auto& [name, value] : test_.options) {
    if (name != "intermediate" ||
        std::sscanf(value.c_str(), "%lf", &request.intermediate_bytes) != 1)
      return failed(fmt::format("`warnings` takes no option `{}={}`", name, value));
  }
  std::string error;
  const auto made = make_kernels(program, {.has_notes = true}, unit_, &error);
  if (!made) return failed(rendered() + error);
  report_warnings(program, *made, request, unit_);
  return shown(rendered());
}

CaseResult CaseRunner::schedule(const ir::Program& program) {
  RunRequest r;
  std::string error;
  std::map<std::string, std::string> options = test_.options;
  const ScheduleEdit edit = taken_schedule_edit(options);
  if (!read_request(program, options, r, error)) return failed(error);
  std::optional<FirstSchedule> scheduled;
  if (edit.is_on()) {
    const auto text = edited_schedule(program, edit, unit_);
    if (text) scheduled = replay_schedule(program, *text, unit_, &error);
    if (!error.empty() && test_.command == "schedule") return shown(error + "\n");
  } else {
    scheduled = first_schedule(program, unit_);
  }
  if (!scheduled) return failed(error + rendered());
  const auto difference = check_scheduled(program, scheduled->program, r, unit_);
  if (!difference) return failed(rendered());
  if (!difference->empty()) return failed(*difference + "\n" + ir::print(scheduled->program));
  if (test_.command != "schedule") return {};
  return shown(ir::print(costs_option_.empty() ? without_costs(scheduled->program, unit_.pool)
                                               : scheduled->program));
}

std::string CaseRunner::with_or_without_cycles(std::string text) const {
  return costs_option_.empty() ? without_cycles(text) : text;
}

}  // namespace nautilus::driver

// SPDX-License-Identifier: Apache-2.0
// nautilus schedule: the decisions that make kernels of a program, and what they give.
// nautilus explain: how they were found.
#include <fmt/format.h>

#include "base/files.h"
#include "command.h"
#include "driver/hints.h"
#include "driver/scheduling.h"
#include "ir/print.h"

namespace nautilus::tool {
namespace {

struct ScheduleOptions {
  std::string file;
  std::string schedule;
  std::vector<std::string> shape;
  bool program = false;
  bool check = false;
};

int finish(const ScheduleOptions& o, const ir::Program& program, const driver::FirstSchedule& s,
           const std::map<std::string, int64_t>& sizes, driver::Unit& unit) {
  fmt::print("{}", o.program ? ir::print(s.program) : schedule::print(s.decisions));
  if (!o.check) return kOk;
  driver::RunRequest request;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    const auto size = d ? sizes.find(std::string(d->name.str())) : sizes.end();
    if (size != sizes.end()) request.given.sizes.insert(*size);
  }
  const auto difference = driver::check_scheduled(program, s.program, request, unit);
  print_messages(unit);
  if (!difference) return kProgramError;
  fmt::print(stderr, "{}\n", difference->empty() ? "agrees with the definition" : *difference);
  return difference->empty() ? kOk : kProgramError;
}

int run_schedule(const ScheduleOptions& o, bool is_explain) {
  std::map<std::string, int64_t> statics;
  if (!parse_sizes(o.shape, statics)) return kUsageError;
  driver::Unit unit;
  int code = kOk;
  auto program = load_file(o.file, statics, unit, code);
  print_messages(unit);
  if (!program) return std::max<int>(code, kProgramError);
  program = driver::with_hints(std::move(*program), statics);
  if (program->level->name != "spec") {
    usage_error("a schedule starts from a program of the math language");
    return kUsageError;
  }
  if (is_explain) {
    fmt::print("{}", driver::explain(*program, unit));
    return kOk;
  }
  if (o.schedule.empty()) {
    const auto s = driver::first_schedule(*program, unit);
    if (!s) {
      print_messages(unit);
      return kProgramError;
    }
    return finish(o, *program, *s, statics, unit);
  }
  std::string error;
  const auto text = base::read_file(o.schedule, &error);
  if (!text) {
    usage_error(error);
    return kUsageError;
  }
  const auto s = driver::replay_schedule(*program, *text, unit, &error);
  if (!s) {
    print_messages(unit);
    if (!error.empty()) fmt::print(stderr, "nautilus: {}: {}\n", o.schedule, error);
    return kProgramError;
  }
  return finish(o, *program, *s, statics, unit);
}

}  // namespace

void add_schedule(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ScheduleOptions>();
  CLI::App* c = app.add_subcommand("schedule", "Show the first schedule of a program");
  c->add_option("FILE", o->file, "a program (.naut)")->required();
  c->add_option("--schedule", o->schedule, "replay the decisions of this file instead");
  c->add_option("--shape", o->shape,
                "values for static sizes, hints, and all sizes of --check, NAME=N[,NAME=N]")
      ->allow_extra_args(false);
  c->add_flag("--program", o->program, "the scheduled program instead of the decisions");
  c->add_flag("--check", o->check, "run it in the interpreter, against the definition");
  c->footer("Example: nautilus schedule --program examples/attention_causal.naut");
  c->callback([o, &exit_code] { exit_code = run_schedule(*o, false); });
}

void add_explain(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ScheduleOptions>();
  CLI::App* c = app.add_subcommand("explain", "Show how the first schedule was derived");
  c->add_option("FILE", o->file, "a program (.naut)")->required();
  c->add_option("--shape", o->shape,
                "values for static sizes, hints, and all sizes of --check, NAME=N[,NAME=N]")
      ->allow_extra_args(false);
  c->footer("Example: nautilus explain examples/attention_causal.naut");
  c->callback([o, &exit_code] { exit_code = run_schedule(*o, true); });
}

}  // namespace nautilus::tool

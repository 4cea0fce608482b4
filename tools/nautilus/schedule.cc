// SPDX-License-Identifier: Apache-2.0
// nautilus schedule: the decisions that make kernels of a program, and what they give.
// nautilus explain: how they were found.
#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "base/files.h"
#include "command.h"
#include "driver/explain.h"
#include "driver/hints.h"
#include "driver/sweep.h"
#include "ir/print.h"

namespace nautilus::tool {
namespace {

struct ScheduleOptions {
  std::string file;
  std::string schedule;
  std::vector<std::string> shape;
  std::string target;
  bool program = false;
  bool check = false;
  bool sweep = false;
  size_t limit = 0;
  std::string folder;
  bool refused = false;
};

constexpr size_t kUsualSweep = 12;

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

// The schedules of a sweep: one after the other, or as files <program>.<n>.sched of a folder.
int run_sweep(const ScheduleOptions& o, const ir::Program& program, driver::Unit& unit) {
  std::optional<std::vector<driver::SweptSchedule>> swept;
  std::string error;
  if (o.schedule.empty()) {
    swept = driver::sweep(program, o.limit > 0 ? o.limit : kUsualSweep, unit);
  } else {
    const auto text = base::read_file(o.schedule, &error);
    if (!text) {
      usage_error(error);
      return kUsageError;
    }
    const size_t limit = o.limit > 0 ? o.limit : std::numeric_limits<size_t>::max();
    swept = driver::sweep_holes(program, *text, limit, unit, &error);
    if (!error.empty()) fmt::print(stderr, "nautilus: {}: {}\n", o.schedule, error);
  }
  print_messages(unit);
  if (!swept) return kProgramError;
  if (o.folder.empty()) {
    fmt::print("{}", driver::sweep_text(*swept, o.refused));
    return kOk;
  }
  std::error_code failure;
  std::filesystem::create_directories(o.folder, failure);
  if (failure) {
    usage_error(fmt::format("{}: {}", o.folder, failure.message()));
    return kUsageError;
  }
  int n = 0;
  for (const driver::SweptSchedule& s : *swept) {
    if (!s.why.empty()) {
      if (o.refused) fmt::print("# {}: {}\n", s.name, s.why);
      continue;
    }
    const std::string path = fmt::format("{}/{}.{}.sched", o.folder, program.name, ++n);
    if (!base::write_file_atomic(path, s.text, &error)) {
      usage_error(error);
      return kUsageError;
    }
    fmt::print("{}: {}\n", path, s.name);
  }
  return kOk;
}

int run_schedule(const ScheduleOptions& o, bool is_explain) {
  std::map<std::string, int64_t> statics;
  if (!parse_sizes(o.shape, statics)) return kUsageError;
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
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
  if (o.sweep) return run_sweep(o, *program, unit);
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
  c->add_option("--target", o->target, kTargetHelp);
  c->add_flag("--program", o->program, "the scheduled program instead of the decisions");
  c->add_flag("--check", o->check, "run it in the interpreter, against the definition");
  CLI::Option* sweep = c->add_flag("--sweep", o->sweep,
                                   "schedules to try, each with one kernel in place of several, "
                                   "best predicted at the sizes of --shape first; or, if there is "
                                   "a --schedule, the fillings of its holes");
  c->add_option("--limit", o->limit, "how many schedules of the sweep (12; of holes: all)")
      ->needs(sweep);
  c->add_option("-o", o->folder, "a folder for them: <program>.<n>.sched")->needs(sweep);
  c->add_flag("--refused", o->refused, "also say what was left out of the sweep, and why")
      ->needs(sweep);
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
  c->add_option("--target", o->target, kTargetHelp);
  c->footer("Example: nautilus explain examples/attention_causal.naut");
  c->callback([o, &exit_code] { exit_code = run_schedule(*o, true); });
}

}  // namespace nautilus::tool

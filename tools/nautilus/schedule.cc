// SPDX-License-Identifier: Apache-2.0
// nautilus schedule: the decisions that make kernels of a program, and what they give.
// nautilus explain: how they were found, and what passes made of them.
#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "base/files.h"
#include "driver/kernels/sized_kernels.h"
#include "driver/kernels/sweep.h"
#include "driver/load/hints.h"
#include "driver/report/explain_page.h"
#include "ir/print.h"
#include "json_output.h"
#include "schedule/text/schedule.h"
#include "warn_option.h"

namespace nautilus::tool {
namespace {

struct ScheduleOptions {
  std::string file;
  std::vector<std::string> schedule;
  std::vector<std::string> shape;
  std::string target;
  bool program = false;
  bool check = false;
  bool sweep = false;
  bool forms = false;
  size_t limit = 0;
  std::string folder;
  bool refused = false;
  bool passes = false;
  std::string kernel;
  bool json = false;
  WarnOption warn;
  std::string html;
};

constexpr size_t kUsualSweep = 12;

int finish(const ScheduleOptions& o, const ir::Program& program, const driver::FirstSchedule& s,
           const std::map<std::string, int64_t>& sizes, driver::Unit& unit) {
  const std::string text = o.program ? ir::print(s.program) : schedule::print(s.decisions);
  const auto show = [&](bool ok, const std::string* found) {
    nlohmann::json j = report_json(ok, unit);
    j[o.program ? "program" : "schedule"] = text;
    if (found) j["difference"] = *found;
    write_json(j);
  };
  if (!o.json) fmt::print("{}", text);
  if (!o.check) {
    if (o.json) show(true, nullptr);
    return kOk;
  }
  driver::RunRequest request;
  for (const ir::Op& op : program.body) {
    const auto* d = op.get<ir::Dim>();
    const auto size = d ? sizes.find(std::string(d->name.str())) : sizes.end();
    if (size != sizes.end()) request.given.sizes.insert(*size);
  }
  const auto difference = driver::check_scheduled(program, s.program, request, unit);
  print_messages(unit);
  if (o.json) show(difference && difference->empty(), difference ? &*difference : nullptr);
  if (!difference) return kProgramError;
  if (o.json) return difference->empty() ? kOk : kProgramError;
  fmt::print(stderr, "{}\n", difference->empty() ? "agrees with the definition" : *difference);
  return difference->empty() ? kOk : kProgramError;
}

// Several schedules for different sizes, which are no one program of loops.
int finish_sized(const ScheduleOptions& o, const ir::Program& program, const std::string& text,
                 driver::Unit& unit) {
  if (o.program || o.check) {
    usage_error("--program and --check are for one schedule, not for several by sizes");
    return kUsageError;
  }
  std::string error;
  const auto all = driver::complete_sized(program, text, unit, &error);
  if (!error.empty()) report_schedule(o.schedule, error, unit);
  print_messages(unit);
  if (!all) return kProgramError;
  fmt::print("{}", *all);
  return kOk;
}

// The schedules of a sweep: one after the other, or as files <program>.<n>.sched of a folder.
int run_sweep(const ScheduleOptions& o, const ir::Program& program, driver::Unit& unit) {
  std::optional<std::vector<driver::SweptSchedule>> swept;
  std::string error;
  if (o.schedule.empty()) {
    swept = driver::sweep(program, o.forms ? driver::SweepOf::Forms : driver::SweepOf::Everything,
                          o.limit > 0 ? o.limit : kUsualSweep, unit);
  } else {
    int code = kOk;
    const auto text = read_schedule(o.schedule, program, unit, code);
    if (!text) return code;
    const size_t limit = o.limit > 0 ? o.limit : std::numeric_limits<size_t>::max();
    swept = driver::sweep_holes(program, *text, limit, unit, &error);
    if (!error.empty()) report_schedule(o.schedule, error, unit);
  }
  print_messages(unit);
  if (!swept) {
    if (o.json) write_json(report_json(false, unit, error));
    return kProgramError;
  }
  if (o.json) {
    nlohmann::json j = report_json(true, unit);
    j["schedules"] = nlohmann::json::array();
    for (const driver::SweptSchedule& s : *swept) {
      if (s.why.empty())
        j["schedules"].push_back({{"name", s.name}, {"schedule", s.text}});
      else if (o.refused)
        j["schedules"].push_back({{"name", s.name}, {"refused", s.why}});
    }
    write_json(j);
    return kOk;
  }
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

// The program at the sizes of --shape. Prints what went wrong; `code` is set then.
std::optional<ir::Program> load(const ScheduleOptions& o, std::map<std::string, int64_t>& sizes,
                                driver::Unit& unit, int& code) {
  code = kUsageError;
  if (!parse_sizes(o.shape, sizes) || !choose_target(o.target, unit)) return std::nullopt;
  code = kOk;
  auto program = load_file(o.file, sizes, unit, code);
  print_messages(unit);
  if (program) return driver::with_hints(std::move(*program), sizes);
  if (o.json && code != kUsageError) write_json(report_json(false, unit));
  code = std::max<int>(code, kProgramError);
  return std::nullopt;
}

int run_explain(const ScheduleOptions& o) {
  driver::Unit unit;
  int code = kOk;
  std::map<std::string, int64_t> sizes;
  const auto program = load(o, sizes, unit, code);
  const auto schedule = program ? read_schedule(o.schedule, *program, unit, code) : std::nullopt;
  if (!schedule) return code;
  driver::ExplainRequest request;
  if (!o.schedule.empty()) request.schedule = schedule;
  request.passes = {o.passes, o.kernel};
  request.has_derivation = !o.passes && o.kernel.empty();
  request.has_summary = request.has_derivation;
  if (o.warn.is_on() && request.has_derivation)
    request.warnings = driver::WarningRequest{.intermediate_bytes = 1e6 * o.warn.intermediate_mb,
                                              .tries_static = true};
  std::string error;
  const auto text = o.html.empty() ? driver::explain(*program, request, unit, &error)
                                   : driver::explain_page(*program, request, unit, &error);
  print_messages(unit);
  if (!error.empty()) fmt::print(stderr, "nautilus: {}: {}\n", o.file, error);
  if (text && is_failure(o.warn, unit)) return kProgramError;
  if (o.json) {
    nlohmann::json j = report_json(text.has_value(), unit, error);
    j["text"] = text.value_or("");
    write_json(j);
    return text ? kOk : kProgramError;
  }
  if (!text) return kProgramError;
  if (o.html.empty()) {
    fmt::print("{}", *text);
    return kOk;
  }
  if (base::write_file_atomic(o.html, *text, &error)) return kOk;
  usage_error(error);
  return kUsageError;
}

int run_schedule(const ScheduleOptions& o) {
  driver::Unit unit;
  int code = kOk;
  std::map<std::string, int64_t> statics;
  const auto program = load(o, statics, unit, code);
  if (!program) return code;
  if (program->level->name != "spec") {
    usage_error("a schedule starts from a program of the math language");
    return kUsageError;
  }
  if (o.sweep) return run_sweep(o, *program, unit);
  if (o.schedule.empty()) {
    const auto s = driver::first_schedule(*program, unit);
    if (!s) {
      print_messages(unit);
      if (o.json) write_json(report_json(false, unit));
      return kProgramError;
    }
    return finish(o, *program, *s, statics, unit);
  }
  const auto text = read_schedule(o.schedule, *program, unit, code);
  if (!text) return code;
  std::string error;
  if (schedule::is_sized(*text)) return finish_sized(o, *program, *text, unit);
  auto s = driver::replay_schedule(*program, *text, unit, &error);
  if (!s) {
    if (!error.empty()) report_schedule(o.schedule, error, unit);
    print_messages(unit);
    if (o.json) write_json(report_json(false, unit, error));
    return kProgramError;
  }
  driver::complete(*s, unit);
  return finish(o, *program, *s, statics, unit);
}

}  // namespace

void add_schedule(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ScheduleOptions>();
  CLI::App* c = app.add_subcommand("schedule", "Show the first schedule of a program");
  c->add_option("FILE", o->file, "a program (.naut)")->required();
  c->add_option("--schedule", o->schedule,
                "replay the decisions of this file instead; what it leaves out is chosen by rule; "
                "KERNEL=FILE: of the file that kernel alone")
      ->allow_extra_args(false);
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
  c->add_flag("--forms", o->forms,
              "of the sweep only other kernels for statements without tiles: rows or points, which "
              "statements share one, steps of reductions")
      ->needs(sweep);
  c->add_option("--limit", o->limit, "how many schedules of the sweep (12; of holes: all)")
      ->needs(sweep);
  c->add_option("-o", o->folder, "a folder for them: <program>.<n>.sched")->needs(sweep);
  c->add_flag("--refused", o->refused, "also say what was left out of the sweep, and why")
      ->needs(sweep);
  c->add_flag("--json", o->json, kJsonHelp)->excludes("-o");
  c->footer("Example: nautilus schedule --program examples/attention_causal.naut");
  c->callback([o, &exit_code] { exit_code = run_schedule(*o); });
}

void add_explain(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ScheduleOptions>();
  CLI::App* c = app.add_subcommand(
      "explain", "Show how the kernels of a program were derived, and what each pass did to them");
  c->add_option("FILE", o->file, "a program (.naut); IR text of any level has passes alone")
      ->required();
  c->add_option("--shape", o->shape, "values for static sizes and hints, NAME=N[,NAME=N]")
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  c->add_option("--target", o->target, kTargetHelp);
  c->add_flag(
      "--passes", o->passes,
      "the passes alone, with what each changed in the text of the program and its kernels");
  c->add_option("--kernel", o->kernel, "the passes of this kernel alone");
  c->add_option("--html", o->html,
                "write one self-contained page instead: launches, floors, warnings, and all levels "
                "beside each other")
      ->excludes("--passes")
      ->excludes("--kernel");
  add_warn_option(*c, o->warn);
  c->add_flag("--json", o->json, "the text and the messages as JSON on standard output")
      ->excludes("--html");
  c->footer(
      "Examples:\n"
      "  nautilus explain examples/attention_causal.naut\n"
      "  nautilus explain examples/attention_causal.naut --passes --kernel attention_causal_2\n"
      "The program after each pass is a file of `nautilus print --level matile --dump-dir DIR`.");
  c->callback([o, &exit_code] { exit_code = run_explain(*o); });
}

}  // namespace nautilus::tool

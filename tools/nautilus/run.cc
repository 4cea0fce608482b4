// SPDX-License-Identifier: Apache-2.0
// nautilus run: run a program, in the emulator or on a device, and check it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "driver/load/draw_inputs.h"
#include "driver/load/hints.h"
#include "driver/run/launch_report.h"
#include "driver/run/run.h"
#include "json_output.h"
#include "matile/ops.h"
#include "runtime/cuda_device.h"
#include "warn_option.h"

namespace nautilus::tool {
namespace {

struct RunOptions {
  std::string file;
  std::string target;
  std::vector<std::string> source;
  std::vector<std::string> set;
  std::vector<std::string> input;
  std::vector<std::string> output;
  std::vector<std::string> shape;
  std::vector<std::string> schedule;
  uint64_t seed = 1;
  int sms = 2;
  WarnOption warn;
  bool emulate = false;
  bool check = false;
  bool json = false;
  int64_t idle_limit = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

const char* verdict_text(spec::Verdict v) {
  switch (v) {
    case spec::Verdict::Accepted:
      return "ok";
    case spec::Verdict::Wrong:
      return "WRONG";
    case spec::Verdict::NotJudged:
      return "NOT JUDGED";
  }
  return "";
}

bool names_oracle(const ir::Program& program) {
  return std::any_of(program.body.begin(), program.body.end(),
                     [](const ir::Op& op) { return op.is<matile::Oracle>(); });
}

bool names_outputs(const ir::Program& program, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(texts, pairs)) return false;
  const auto outputs = matile::tensors(program, matile::TensorRole::Output);
  for (const auto& [name, path] : pairs) {
    if (outputs.contains(name)) continue;
    usage_error(fmt::format("the program has no output `{}`", name));
    return false;
  }
  return true;
}

bool write_outputs(const driver::Outputs& outputs, const std::vector<std::string>& texts,
                   bool is_quiet) {
  std::map<std::string, std::string> pairs;
  if (!parse_pairs(texts, pairs)) return false;
  for (const auto& [name, path] : pairs) {
    if (!write_tensor(path, outputs.at(name))) return false;
    if (!is_quiet) fmt::print("wrote {}\n", path);
  }
  return true;
}

nlohmann::json launches_json(const std::vector<driver::PlannedLaunch>& launches) {
  nlohmann::json out = nlohmann::json::array();
  for (const driver::PlannedLaunch& l : launches) {
    nlohmann::json j = {{"kernel", l.kernel}, {"ctas", l.grid}, {"threads", l.threads}};
    for (const auto& [name, value] : l.reasons) j["reasons"][name] = value;
    out.push_back(j);
  }
  return out;
}

int run_run(const RunOptions& o) {
  nlohmann::json report = nlohmann::json::object();
  std::string error;
  driver::Unit unit;
  if (!choose_target(o.target, unit)) return kUsageError;
  int code = kOk;
  std::map<std::string, int64_t> sizes;
  if (!parse_sizes(o.shape, sizes)) return kUsageError;
  const auto loaded = load_file(o.file, sizes, unit, code);
  const auto finish = [&](int exit) {
    if (o.json && exit != kUsageError) {
      report.update(report_json(exit == kOk, unit, error));
      write_json(report);
    } else {
      print_messages(unit);
    }
    return exit;
  };
  if (!loaded) return finish(std::max<int>(code, kProgramError));
  const auto made = make_kernels(*loaded, o.schedule, nullptr, unit, code);
  if (!made) return finish(code);
  const ir::Program* program = &made->program;
  warn(driver::with_hints(*loaded, sizes), *made, o.warn, false, unit);
  if (is_failure(o.warn, unit)) return finish(kProgramError);
  driver::DeviceOptions device;
  if (!o.source.empty() && o.emulate) {
    usage_error("--source is for a GPU: the emulator runs the body alone");
    return kUsageError;
  }
  if (!read_sources(o.source, *program, device.sources)) return finish(kUsageError);
  driver::RunRequest request;
  request.seed = o.seed;
  for (const ir::Op& op : program->body) {
    const auto* s = op.get<ir::Static>();  // is in the program already
    if (s) sizes.erase(std::string(s->name.str()));
  }
  request.given.sizes.insert(sizes.begin(), sizes.end());
  if (!read_scalars(*program, o.set, request.given) ||
      !read_inputs(*program, o.input, request.given) || !names_outputs(*program, o.output))
    return kUsageError;
  // Inputs are drawn for the program that others are held against: both see the same numbers.
  std::optional<ir::Program> oracle;
  if (loaded->level->name == "spec") {
    oracle = loaded;
  } else if (o.check || names_oracle(*program)) {
    oracle = driver::load_oracle(*program, o.file, unit);
    if (!oracle) return finish(kProgramError);
  }
  int sms = o.sms;
  if (!o.emulate) {
    std::string ignored;  // the run itself says it
    const auto architecture = driver::architecture_of(*program, &ignored);
    const auto opened = architecture ? runtime::Device::open(0, *architecture, &ignored) : nullptr;
    if (opened) sms = opened->info().multiprocessors;
  }
  std::optional<ir::Environment> env;
  if (oracle) {
    for (const ir::Op& op : program->body) {
      const auto* d = op.get<ir::Dim>();
      if (d && d->hint && o.input.empty()) request.given.sizes.emplace(d->name.str(), *d->hint);
    }
    env = driver::prepare(*oracle, request, unit);
  } else {
    env = driver::draw_inputs(*program, request.given, o.seed, sms, unit, &error);
    if (!env && !error.empty()) fmt::print(stderr, "nautilus: {}\n", error);
  }
  if (!env) return finish(kProgramError);
  const ir::Environment own = oracle ? driver::environment_of(*program, *env) : *env;
  const auto start = std::chrono::steady_clock::now();
  driver::EmulateOptions emulate_options;
  emulate_options.seed = o.seed;
  emulate_options.multiprocessors = o.sms;
  emulate_options.idle_limit = o.idle_limit;
  const auto got = o.emulate
                       ? driver::run_emulated(*program, own, emulate_options, unit.pool, &error)
                       : driver::run_on_device(*program, own, device, unit.pool, &error);
  if (!got) {
    fmt::print(stderr, "nautilus: {}\n", error);
    // What the evaluator finds wrong with the inputs, an index outside a tensor, explains it.
    if (o.check) spec::evaluate(*oracle, *env, {}, unit.pool, unit.sink);
    return finish(kProgramError);
  }
  const auto launches = driver::planned_launches(*program, own, sms);
  report["file"] = o.file;
  report["emulated"] = o.emulate;
  report["seconds"] = seconds_since(start);
  report["sizes"] = own.sizes;
  report["launches"] = launches_json(launches);
  if (!o.json) {
    fmt::print("{}: {} in {:.3f} s\n", o.file, o.emulate ? "emulated" : "run",
               report["seconds"].get<double>());
    fmt::print("{}", driver::launch_report(launches));
    fmt::print("{}", sources_report(*program, device.sources));
  }
  if (!write_outputs(*got, o.output, o.json)) return finish(kUsageError);
  if (!o.check) return finish(kOk);
  const auto want = spec::evaluate_to_judge(*oracle, *env, {}, unit.pool, unit.sink);
  if (!want) return finish(kProgramError);
  bool ok = true;
  for (const driver::CheckLine& line :
       driver::compare_outputs(*got, *want, ir::numerics_of(*oracle))) {
    const spec::Result& result = want->at(line.tensor);
    const std::string why = spec::objection(line.comparison, got->at(line.tensor), result);
    ok &= why.empty();
    report["outputs"].push_back({{"name", line.tensor},
                                 {"verdict", verdict_text(line.comparison.verdict)},
                                 {"relative_error", line.relative_error},
                                 {"of_allowed", line.comparison.worst_ratio},
                                 {"sampled", result.is_sampled},
                                 {"objection", why}});
    if (o.json) continue;
    fmt::print("  {}: {}, relative error {:.2e}, worst element {:.2f} of what is allowed{}{}\n",
               line.tensor, verdict_text(line.comparison.verdict), line.relative_error,
               line.comparison.worst_ratio, result.is_sampled ? " (sampled)" : "",
               why.empty() ? "" : "; " + why);
  }
  return finish(ok ? kOk : kProgramError);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* c = app.add_subcommand("run", "Run a program on random inputs, or on given ones");
  c->add_option("FILE", o->file, "a program (.naut) or IR text of any level")->required();
  c->add_option("--target", o->target, kTargetHelp);
  c->add_option("--shape", o->shape, "sizes: M=64,N=80; others from the program's hints")
      ->delimiter(',')
      ->allow_extra_args(false);
  c->add_option("--schedule", o->schedule, kScheduleHelp)->allow_extra_args(false);
  add_warn_option(*c, o->warn);
  c->add_option("--seed", o->seed, "of the inputs, and of the emulator's schedule");
  c->add_option("--sms", o->sms, "multiprocessors of the emulated device")->capture_default_str();
  c->add_option("--idle-limit", o->idle_limit,
                "calls without progress after which an emulated kernel is said to loop "
                "(default: 100 million)")
      ->check(CLI::PositiveNumber);
  c->add_option("--set", o->set, "scalars, NAME=X[,NAME=X]; default: as declared")
      ->allow_extra_args(false);
  c->add_option("--input", o->input, "input tensors, NAME=FILE.npy; the others are drawn at random")
      ->allow_extra_args(false);
  c->add_option("--output", o->output, "write an output, NAME=FILE.npy")->allow_extra_args(false);
  c->add_option("--source", o->source, kSourceHelp)->allow_extra_args(false);
  c->add_flag("--json", o->json, kJsonHelp);
  c->add_flag("--emulate", o->emulate, "in the emulator instead of on a GPU");
  c->add_flag(
      "--check", o->check,
      "compare with the reference evaluator, or with the oracle that an MA-tile file names");
  c->footer(
      "Example: nautilus run golden/gemm_coop_128x256.matile --target sm_90a --emulate --check");
  c->callback([o, &exit_code] { exit_code = run_run(*o); });
}

}  // namespace nautilus::tool

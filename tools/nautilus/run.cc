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
  std::string oracle;
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

// One call of `run`. Each step returns how the tool ends if it fails, and nothing if not.
class RunCommand {
 public:
  explicit RunCommand(const RunOptions& o) : o_(o) {}

  int run() {
    if (!choose_target(o_.target, unit_) || !parse_sizes(o_.shape, sizes_)) return kUsageError;
    for (const auto step : {&RunCommand::load, &RunCommand::read_given, &RunCommand::prepare,
                            &RunCommand::execute, &RunCommand::check}) {
      if (const auto code = (this->*step)()) return *code;
    }
    return finish(kOk);
  }

 private:
  using Step = std::optional<int>;

  int finish(int exit) {
    if (o_.json && exit != kUsageError) {
      report_.update(report_json(exit == kOk, unit_, error_));
      write_json(report_);
    } else {
      print_messages(unit_);
    }
    return exit;
  }

  const ir::Program& program() const { return made_->program; }

  Step load() {
    int code = kOk;
    loaded_ = load_file(o_.file, sizes_, unit_, code);
    if (!loaded_) return finish(std::max<int>(code, kProgramError));
    made_ = make_kernels(*loaded_, o_.schedule, nullptr, unit_, code);
    if (!made_) return finish(code);
    warn(driver::with_hints(*loaded_, sizes_), *made_, o_.warn, false, unit_);
    if (is_failure(o_.warn, unit_)) return finish(kProgramError);
    return std::nullopt;
  }

  // What the options say of sources, sizes, inputs and outputs.
  Step read_given() {
    if (!o_.source.empty() && o_.emulate) {
      usage_error("--source is for a GPU: the emulator runs the body alone");
      return kUsageError;
    }
    if (!read_sources(o_.source, program(), device_.sources)) return finish(kUsageError);
    request_.seed = o_.seed;
    for (const ir::Op& op : program().body) {
      const auto* s = op.get<ir::Static>();  // is in the program already
      if (s) sizes_.erase(std::string(s->name.str()));
    }
    request_.given.sizes.insert(sizes_.begin(), sizes_.end());
    if (!read_scalars(program(), o_.set, request_.given) ||
        !read_inputs(program(), o_.input, request_.given) || !names_outputs(program(), o_.output))
      return kUsageError;
    return std::nullopt;
  }

  // Inputs are drawn for the program that others are held against: both see the same numbers.
  Step prepare() {
    if (!o_.oracle.empty()) {
      oracle_ = driver::load_given_oracle(program(), o_.oracle, unit_);
    } else if (loaded_->level->name == "spec") {
      oracle_ = loaded_;
    } else if (o_.check || names_oracle(program())) {
      oracle_ = driver::load_oracle(program(), o_.file, unit_);
    }
    if (!oracle_ && unit_.sink.has_errors()) return finish(kProgramError);
    find_multiprocessors();
    if (oracle_) {
      for (const ir::Op& op : program().body) {
        const auto* d = op.get<ir::Dim>();
        if (d && d->hint && o_.input.empty()) request_.given.sizes.emplace(d->name.str(), *d->hint);
      }
      env_ = driver::prepare(*oracle_, request_, unit_);
    } else {
      env_ = driver::draw_inputs(program(), request_.given, o_.seed, sms_, unit_, &error_);
      if (!env_ && !error_.empty()) fmt::print(stderr, "nautilus: {}\n", error_);
    }
    if (!env_) return finish(kProgramError);
    return std::nullopt;
  }

  void find_multiprocessors() {
    sms_ = o_.sms;
    if (o_.emulate) return;
    std::string ignored;  // the run itself says it
    const auto architecture = driver::architecture_of(program(), &ignored);
    const auto opened = architecture ? runtime::Device::open(0, *architecture, &ignored) : nullptr;
    if (opened) sms_ = opened->info().multiprocessors;
  }

  Step execute() {
    const ir::Environment own = oracle_ ? driver::environment_of(program(), *env_) : *env_;
    const auto start = std::chrono::steady_clock::now();
    driver::EmulateOptions emulate_options;
    emulate_options.seed = o_.seed;
    emulate_options.multiprocessors = o_.sms;
    emulate_options.idle_limit = o_.idle_limit;
    got_ = o_.emulate ? driver::run_emulated(program(), own, emulate_options, unit_.pool, &error_)
                      : driver::run_on_device(program(), own, device_, unit_.pool, &error_);
    if (!got_) {
      fmt::print(stderr, "nautilus: {}\n", error_);
      // What the evaluator finds wrong with the inputs, an index outside a tensor, explains it.
      if (o_.check) spec::evaluate(*oracle_, *env_, {}, unit_.pool, unit_.sink);
      return finish(kProgramError);
    }
    tell(own, seconds_since(start));
    if (!write_outputs(*got_, o_.output, o_.json)) return finish(kUsageError);
    return std::nullopt;
  }

  void tell(const ir::Environment& own, double seconds) {
    const auto launches = driver::planned_launches(program(), own, sms_);
    report_["file"] = o_.file;
    report_["emulated"] = o_.emulate;
    report_["seconds"] = seconds;
    report_["sizes"] = own.sizes;
    report_["launches"] = launches_json(launches);
    if (o_.json) return;
    fmt::print("{}: {} in {:.3f} s\n", o_.file, o_.emulate ? "emulated" : "run", seconds);
    fmt::print("{}", driver::launch_report(launches));
    fmt::print("{}", sources_report(program(), device_.sources));
  }

  Step check() {
    if (!o_.check) return std::nullopt;
    const auto want = spec::evaluate_to_judge(*oracle_, *env_, {}, unit_.pool, unit_.sink);
    if (!want) return finish(kProgramError);
    for (const auto& [name, tensor] : *got_) {
      if (want->contains(name)) continue;
      unit_.sink.report(diag::Code::BadInput, {},
                        fmt::format("the oracle has no output `{}`", name));
      return finish(kProgramError);
    }
    bool ok = true;
    for (const driver::CheckLine& line :
         driver::compare_outputs(*got_, *want, ir::numerics_of(*oracle_))) {
      const spec::Result& result = want->at(line.tensor);
      const std::string why = spec::objection(line.comparison, got_->at(line.tensor), result);
      ok &= why.empty();
      tell_check(line, result.is_sampled, why);
    }
    return finish(ok ? kOk : kProgramError);
  }

  void tell_check(const driver::CheckLine& line, bool is_sampled, const std::string& why) {
    report_["outputs"].push_back({{"name", line.tensor},
                                  {"verdict", verdict_text(line.comparison.verdict)},
                                  {"relative_error", line.relative_error},
                                  {"of_allowed", line.comparison.worst_ratio},
                                  {"sampled", is_sampled},
                                  {"objection", why}});
    if (o_.json) return;
    fmt::print("  {}: {}, relative error {:.2e}, worst element {:.2f} of what is allowed{}{}\n",
               line.tensor, verdict_text(line.comparison.verdict), line.relative_error,
               line.comparison.worst_ratio, is_sampled ? " (sampled)" : "",
               why.empty() ? "" : "; " + why);
  }

  const RunOptions& o_;
  driver::Unit unit_;
  nlohmann::json report_ = nlohmann::json::object();
  std::string error_;
  std::map<std::string, int64_t> sizes_;
  std::optional<ir::Program> loaded_;
  std::optional<driver::Kernels> made_;
  driver::DeviceOptions device_;
  driver::RunRequest request_;
  std::optional<ir::Program> oracle_;  // what others are held against
  std::optional<ir::Environment> env_;
  int sms_ = 0;
  std::optional<driver::Outputs> got_;
};

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
  c->add_option("--oracle", o->oracle,
                "a program of the math language to compare with instead: for the text of a pass");
  c->footer(
      "Example: nautilus run golden/gemm_coop_128x256.matile --target sm_90a --emulate --check");
  c->callback([o, &exit_code] { exit_code = RunCommand(*o).run(); });
}

}  // namespace nautilus::tool

// SPDX-License-Identifier: Apache-2.0
#include "tune/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diag/render.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/load/hints.h"
#include "driver/oracle/ladder.h"
#include "driver/run/bench.h"
#include "driver/run/run.h"
#include "ir/target_of.h"
#include "runtime/cuda_device.h"
#include "spec/equations_hash.h"
#include "tune/best.h"

namespace nautilus::tune {
namespace {

// Compilers say much, and not always as text.
std::string first_line(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out;
}

// The first thing that was reported, without its place: schedules have none.
std::string reason_of(const std::string& error, const driver::Unit& unit) {
  if (!error.empty()) return error;
  return unit.sink.all().empty() ? "no reason was given" : unit.sink.all()[0].message;
}

class Measurement {
 public:
  Measurement(const Subject& subject, driver::Unit& unit) : subject_(subject), unit_(unit) {}

  void run(const std::string& schedule, bool compiles_only, Trial& trial) {
    trial_ = &trial;
    const auto program = load(subject_, unit_);
    if (!program) return stop(Verdict::Failed, reason_of("", unit_));
    trial.program = program->name;
    std::string error;
    auto scheduled = schedule.empty() ? driver::first_schedule(*program, unit_)
                                      : driver::replay_schedule(*program, schedule, unit_, &error);
    if (!scheduled) return stop(Verdict::Refused, reason_of(error, unit_));
    driver::complete(*scheduled, unit_);
    trial.schedule = schedule::print(scheduled->decisions);
    const auto kernels =
        driver::make_kernels(*program, {.schedule = trial.schedule}, unit_, &error);
    if (!kernels) return stop(Verdict::Refused, reason_of(error, unit_));
    if (compiles_only) {
      if (!driver::compile_for(kernels->program, {}, unit_.pool, &error))
        return stop(Verdict::Refused, error);
      return stop(Verdict::Failed, "compiled only");
    }
    if (check(kernels->program)) time(kernels->program);
  }

 private:
  void stop(Verdict verdict, const std::string& reason) {
    trial_->verdict = verdict;
    trial_->reason = first_line(reason);
  }

  std::optional<driver::Outputs> outputs(const ir::Program& kernels, const ir::Environment& env,
                                         int64_t* steps, std::string* error) {
    if (!subject_.emulates) return driver::run_on_device(kernels, env, {}, unit_.pool, error);
    driver::EmulateOptions options;
    options.seed = subject_.seed;
    options.multiprocessors = subject_.multiprocessors;
    options.steps = steps;
    return driver::run_emulated(kernels, env, options, unit_.pool, error);
  }

  // At the program's own hints, which are small: a tile is then seldom full.
  bool check(const ir::Program& kernels) {
    const auto definition = driver::load_text(subject_.path, subject_.text, subject_.sizes, unit_);
    if (!definition) return refuse(Verdict::Failed, reason_of("", unit_));
    driver::RunRequest request;
    request.seed = subject_.seed;
    const auto env = driver::prepare(*definition, request, unit_);
    if (!env) return refuse(Verdict::Failed, reason_of("", unit_));
    std::string error;
    const auto got = outputs(kernels, driver::environment_of(kernels, *env), nullptr, &error);
    if (!got) return refuse(Verdict::Failed, error);
    const auto want = spec::evaluate_to_judge(*definition, *env, {}, unit_.pool, unit_.sink);
    if (!want) return refuse(Verdict::Failed, reason_of("", unit_));
    for (const driver::CheckLine& line :
         driver::compare_outputs(*got, *want, ir::numerics_of(*definition))) {
      trial_->error = std::max(trial_->error, line.relative_error);
      const std::string why =
          spec::objection(line.comparison, got->at(line.tensor), want->at(line.tensor));
      if (!why.empty()) return refuse(Verdict::Wrong, fmt::format("`{}`: {}", line.tensor, why));
    }
    return true;
  }

  bool refuse(Verdict verdict, std::string reason) {
    stop(verdict, std::move(reason));
    return false;
  }

  void time(const ir::Program& kernels) {
    const auto& dims = trial_->problem.sizes;
    subject_.emulates ? count_steps(kernels, dims) : time_on_device(kernels, dims);
  }

  void count_steps(const ir::Program& kernels, const std::map<std::string, int64_t>& dims) {
    const auto program = driver::load_text(subject_.path, subject_.text, subject_.sizes, unit_);
    driver::RunRequest request;
    request.seed = subject_.seed;
    request.given.sizes.insert(dims.begin(), dims.end());
    const auto env = program ? driver::prepare(*program, request, unit_) : std::nullopt;
    if (!env) return stop(Verdict::Failed, reason_of("", unit_));
    std::string error;
    int64_t steps = 0;
    if (!outputs(kernels, driver::environment_of(kernels, *env), &steps, &error))
      return stop(Verdict::Failed, error);
    trial_->times = {static_cast<double>(steps)};
    trial_->verdict = Verdict::Timed;
  }

  void time_on_device(const ir::Program& kernels, const std::map<std::string, int64_t>& dims) {
    driver::BenchOptions options;
    options.given.sizes.insert(dims.begin(), dims.end());
    options.seed = subject_.seed;
    options.is_burst = true;
    options.repetitions = subject_.repetitions;
    std::string error;
    const auto result = driver::bench(kernels, options, unit_.pool, &error);
    if (!result) return stop(Verdict::Failed, error);
    trial_->times = result->times;
    trial_->clocks = result->clocks;
    trial_->verdict = Verdict::Timed;
  }

  const Subject& subject_;
  driver::Unit& unit_;
  Trial* trial_ = nullptr;
};

}  // namespace

std::optional<ir::Program> load(const Subject& subject, driver::Unit& unit) {
  unit.target = subject.target;
  auto program = driver::load_text(subject.path, subject.text, subject.sizes, unit);
  if (!program) return std::nullopt;
  return driver::with_hints(std::move(*program), subject.sizes);
}

std::optional<Problem> problem_of(const Subject& subject, std::string* error) {
  driver::Unit unit;
  const auto program = load(subject, unit);
  if (!program) {
    *error = diag::render_all(unit.sink);
    return std::nullopt;
  }
  if (program->level->name != "spec") {
    *error = "schedules are for programs of the math language";
    return std::nullopt;
  }
  Problem out;
  out.equations = spec::equations_hash(*program);
  out.target = ir::target_of(*program).name;
  out.sizes = hinted_sizes(*program);
  std::set<std::string> statics;
  for (const ir::Op& op : program->body) {
    if (const auto* s = op.get<ir::Static>()) statics.emplace(s->name.str());
    const auto* d = op.get<ir::Dim>();
    if (d && !d->hint) {
      *error = fmt::format("size `{}` is open: give it with --shape, or a hint", d->name.str());
      return std::nullopt;
    }
  }
  for (const auto& [name, size] : subject.sizes) {
    if (statics.contains(name) || out.sizes.contains(name)) continue;
    *error = fmt::format("the program has no size `{}`", name);
    return std::nullopt;
  }
  if (subject.emulates) {
    out.machine = "emulator";
    return out;
  }
  const auto architecture = driver::architecture_of(*program, error);
  if (!architecture) return std::nullopt;
  const auto device = runtime::Device::open(0, *architecture, error);
  if (!device) return std::nullopt;
  out.machine = device->info().name;
  return out;
}

Trial measure(const Subject& subject, const std::string& schedule, bool compiles_only) {
  Trial trial;
  trial.schedule = schedule;
  trial.compiler = NAUTILUS_VERSION;
  trial.date = date_now();
  std::string error;
  const auto problem = problem_of(subject, &error);
  if (!problem) {
    trial.reason = error;
    return trial;
  }
  trial.problem = *problem;
  driver::Unit unit;
  Measurement(subject, unit).run(schedule, compiles_only, trial);
  return trial;
}

}  // namespace nautilus::tune

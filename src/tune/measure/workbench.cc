// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/workbench.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/oracle/ladder.h"
#include "driver/run/bench.h"
#include "driver/run/run.h"
#include "ir/target_of.h"

namespace nautilus::tune {
namespace {

// Between trials, so that one does not heat the machine for the next. `bench` waits longer.
constexpr double kPauseSeconds = 0.05;
// Of the launches of one trial: a slow kernel needs only few of them.
constexpr double kTimedSeconds = 0.5;

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

bool stop(Trial& trial, Verdict verdict, const std::string& reason) {
  trial.verdict = verdict;
  trial.reason = first_line(reason);
  return false;
}

}  // namespace

bool Workbench::open(std::string* error) {
  if (problem_) return true;
  const auto problem = problem_of(subject_, error);
  if (!problem) return false;
  if (!subject_.emulates) {
    device_ = runtime::Device::open(0, problem->target, error);
    if (!device_) return false;
    tensors_.emplace(*device_, subject_.seed);
  }
  unit_.target = subject_.target;
  definition_ = driver::load_text(subject_.path, subject_.text, subject_.sizes, unit_);
  if (!definition_) {
    *error = reason_of("", unit_);
    return false;
  }
  problem_ = problem;
  return true;
}

Trial Workbench::measure(const std::string& schedule) {
  Trial trial;
  trial.schedule = schedule;
  trial.compiler = NAUTILUS_VERSION;
  trial.date = date_now();
  std::string error;
  if (!open(&error)) {
    stop(trial, Verdict::Failed, error);
    return trial;
  }
  trial.problem = *problem_;
  trial.program = definition_->name;
  driver::Unit unit;
  const auto kernels = kernels_of(schedule, unit, trial);
  if (!kernels || !check(*kernels, unit, trial)) return trial;
  subject_.emulates ? count_steps(*kernels, unit, trial) : time(*kernels, unit, trial);
  return trial;
}

std::string Workbench::compile(const std::string& schedule) {
  Trial trial;
  driver::Unit unit;
  std::string error;
  const auto kernels = kernels_of(schedule, unit, trial);
  if (!kernels) return trial.reason;
  return driver::compile_for(*kernels, {}, unit.pool, &error) ? "" : first_line(error);
}

std::optional<ir::Program> Workbench::kernels_of(const std::string& schedule, driver::Unit& unit,
                                                 Trial& trial) const {
  const auto program = load(subject_, unit);
  std::string error;
  auto scheduled = !program           ? std::nullopt
                   : schedule.empty() ? driver::first_schedule(*program, unit)
                                      : driver::replay_schedule(*program, schedule, unit, &error);
  auto kernels = scheduled ? driver::complete_kernels(*scheduled, unit) : std::nullopt;
  if (!kernels) {
    stop(trial, Verdict::Refused, reason_of(error, unit));
    return std::nullopt;
  }
  trial.schedule = kernels->schedule;
  return std::move(kernels->program);
}

// Every size one less than its hint where the program's facts allow it: no tile is full then.
ir::Environment Workbench::edge() const {
  diag::Sink ignored(unit_.sources);
  ir::Environment out;
  for (const ir::Op& op : definition_->body) {
    const auto* d = op.get<ir::Dim>();
    if (!d || !d->hint || *d->hint < 2) continue;
    ir::Environment smaller = out;
    smaller.sizes.insert_or_assign(std::string(d->name.str()), *d->hint - 1);
    ir::Environment whole = smaller;
    if (ir::complete(*definition_, {}, whole, ignored)) out = std::move(smaller);
  }
  return out;
}

const std::vector<Workbench::Case>* Workbench::cases() {
  if (cases_) return &*cases_;
  std::vector<Case> out;
  std::vector<ir::Environment> sizes = {{}};
  if (ir::Environment smaller = edge(); !smaller.sizes.empty()) sizes.push_back(std::move(smaller));
  for (ir::Environment& given : sizes) {
    driver::RunRequest request;
    request.seed = subject_.seed + out.size();
    request.given = std::move(given);
    const auto env = driver::prepare(*definition_, request, unit_);
    if (!env) return nullptr;
    auto want = spec::evaluate_to_judge(*definition_, *env, {}, unit_.pool, unit_.sink);
    if (!want) return nullptr;
    out.push_back({*env, std::move(*want)});
  }
  return &cases_.emplace(std::move(out));
}

std::optional<driver::Outputs> Workbench::outputs(const ir::Program& kernels,
                                                  const ir::Environment& env, int64_t* steps,
                                                  driver::Unit& unit, std::string* error) const {
  const ir::Environment own = driver::environment_of(kernels, env);
  if (!subject_.emulates) return driver::run_on_device(kernels, own, {}, unit.pool, error);
  driver::EmulateOptions options;
  options.seed = subject_.seed;
  options.multiprocessors = subject_.multiprocessors;
  options.steps = steps;
  return driver::run_emulated(kernels, own, options, unit.pool, error);
}

bool Workbench::check(const ir::Program& kernels, driver::Unit& unit, Trial& trial) {
  const auto* list = cases();
  if (!list) return stop(trial, Verdict::Failed, reason_of("", unit_));
  for (const Case& c : *list) {
    std::string error;
    const auto got = outputs(kernels, c.env, nullptr, unit, &error);
    if (!got) return stop(trial, Verdict::Failed, error);
    for (const driver::CheckLine& line :
         driver::compare_outputs(*got, c.want, ir::numerics_of(*definition_))) {
      trial.error = std::max(trial.error, line.relative_error);
      const std::string why =
          spec::objection(line.comparison, got->at(line.tensor), c.want.at(line.tensor));
      if (!why.empty())
        return stop(trial, Verdict::Wrong, fmt::format("`{}`: {}", line.tensor, why));
    }
  }
  return true;
}

void Workbench::count_steps(const ir::Program& kernels, driver::Unit& unit, Trial& trial) {
  driver::RunRequest request;
  request.seed = subject_.seed;
  request.given.sizes.insert(problem_->sizes.begin(), problem_->sizes.end());
  std::string error;
  const auto env = driver::prepare(*definition_, request, unit_);
  int64_t steps = 0;
  if (!env || !outputs(kernels, *env, &steps, unit, &error)) {
    stop(trial, Verdict::Failed, reason_of(error, unit_));
    return;
  }
  trial.times = {static_cast<double>(steps)};
  trial.verdict = Verdict::Timed;
}

void Workbench::time(const ir::Program& kernels, driver::Unit& unit, Trial& trial) {
  driver::BenchOptions options;
  options.given.sizes.insert(problem_->sizes.begin(), problem_->sizes.end());
  options.seed = subject_.seed;
  options.is_burst = true;
  options.pause_seconds = kPauseSeconds;
  options.repetitions = subject_.repetitions;
  options.most_seconds = kTimedSeconds;
  options.tensors = &*tensors_;
  std::string error;
  const auto result = driver::bench(kernels, options, unit.pool, &error);
  if (!result) {
    stop(trial, Verdict::Failed, error);
    return;
  }
  trial.times = result->times;
  trial.clocks = result->clocks;
  trial.verdict = Verdict::Timed;
}

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
#include "tune/schedule_space.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

#include "compile/kernels.h"
#include "driver/kernels/lower_to_kernels.h"
#include "driver/kernels/scheduling.h"
#include "driver/run/launch_report.h"
#include "ir/environment.h"
#include "ir/print.h"
#include "ir/target_of.h"
#include "matile/ops.h"
#include "schedule/choose/sweep.h"
#include "schedule/search/neighbours.h"

namespace nautilus::tune {
namespace {

// Reasons that differ in numbers and lines are one cause.
std::string cause_of(const std::string& reason) {
  const size_t quoted = reason.rfind("`: ");
  std::string out;
  for (const char c : reason.substr(quoted == std::string::npos ? 0 : quoted + 3)) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      if (out.empty() || out.back() != 'N') out += 'N';
    } else {
      out += c;
    }
  }
  return out;
}

// What a plan launches at the program's hints.
std::vector<driver::PlannedLaunch> launches_of(const ir::Program& kernels, const Subject& subject,
                                               driver::Unit& unit) {
  ir::Environment env;
  for (const ir::Op& op : kernels.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) env.sizes.emplace(d->name.str(), *d->hint);
  }
  diag::Sink ignored(unit.sources);
  if (!ir::complete(kernels, {}, env, ignored)) return {};
  const auto sms = subject.emulates ? subject.multiprocessors
                                    : static_cast<int>(ir::target_of(kernels).board.sms);
  auto out = driver::planned_launches(kernels, env, sms);
  std::erase_if(out, [](const driver::PlannedLaunch& launch) { return launch.grid == 0; });
  return out;
}

// The kernels among them, with the CTAs of each, as a hash.
std::string launched(const ir::Program& kernels, const Subject& subject, driver::Unit& unit) {
  std::string text;
  for (const driver::PlannedLaunch& launch : launches_of(kernels, subject, unit)) {
    for (const ir::Op& op : kernels.body) {
      const auto* kernel = op.get<matile::Kernel>();
      if (!kernel || kernel->name.str() != launch.kernel) continue;
      matile::Kernel unnamed = *kernel;
      unnamed.name = unit.pool.name("kernel");
      text += fmt::format("{} {}\n", launch.grid, ir::print(ir::make(std::move(unnamed))));
    }
  }
  return text.empty() ? "" : text_hash(text);
}

// The alternatives of the schedule's kernels, counted from 1, that run there. Empty: nobody knows.
std::set<std::pair<std::string, size_t>> running_alternatives(const ir::Program& program,
                                                              const std::string& schedule,
                                                              const Subject& subject,
                                                              driver::Unit& unit) {
  std::set<std::pair<std::string, size_t>> out;
  std::string ignored;
  ir::PassTrace trace;
  const auto kernels =
      driver::make_kernels(program, {.schedule = schedule, .trace = &trace}, unit, &ignored);
  if (!kernels) return out;
  for (const driver::PlannedLaunch& launch : launches_of(kernels->program, subject, unit)) {
    for (const driver::KernelNote& note : kernels->notes) {
      if (note.kernel == launch.kernel) out.emplace(note.statement, note.alternative);
    }
  }
  return out;
}

}  // namespace

// In a unit of its own: what a search leaves behind would grow without end.
std::optional<Proposal> ScheduleSpace::legal(const std::string& text, std::string name,
                                             double predicted) {
  driver::Unit unit;
  const auto program = load(subject_, unit);
  if (!program) return std::nullopt;
  std::string error;
  auto scheduled = driver::replay_schedule(*program, text, unit, &error);
  ir::PassContext context{unit.pool, unit.sink, {}};
  const auto kernels = scheduled ? compile::to_kernels(scheduled->program, context) : std::nullopt;
  if (!kernels) {
    if (error.empty() && !unit.sink.all().empty()) error = unit.sink.all()[0].message;
    ++refusals_[cause_of(error)];
    return std::nullopt;
  }
  const std::string running = launched(*kernels, subject_, unit);
  if (!running.empty() && !given_.insert(running).second) return std::nullopt;
  driver::complete(*scheduled, unit);
  return Proposal{schedule::print(scheduled->decisions), std::move(name), predicted, running};
}

std::string ScheduleSpace::own_choice() {
  driver::Unit unit;
  const auto program = load(subject_, unit);
  auto first = program ? driver::first_schedule(*program, unit) : std::nullopt;
  if (!first) return "";
  driver::complete(*first, unit);
  return schedule::print(first->decisions);
}

const std::vector<Proposal>& ScheduleSpace::candidates() {
  if (candidates_) return *candidates_;
  candidates_.emplace();
  driver::Unit unit;
  const auto program = load(subject_, unit);
  const auto first = program ? driver::first_schedule(*program, unit) : std::nullopt;
  if (!first) return *candidates_;
  const target::Target& target = ir::target_of(*program);
  for (const schedule::Swept& s : schedule::sweep_candidates(first->decisions, first->kernels,
                                                             first->rounded, target, unit.pool))
    candidates_->push_back({schedule::print(s.schedule), s.name, s.cycles});
  return *candidates_;
}

std::optional<Proposal> ScheduleSpace::seed(size_t n) {
  if (n == 0) {
    const std::string own = own_choice();
    if (own.empty()) return std::nullopt;
    return legal(own, "the compiler's choice", 0).value_or(Proposal{});
  }
  if (n > candidates().size()) return std::nullopt;
  const Proposal& p = candidates()[n - 1];
  return legal(p.schedule, p.name, p.predicted).value_or(Proposal{});
}

const std::vector<Proposal>& ScheduleSpace::others_of(const std::string& schedule) {
  const auto [it, is_new] = others_.try_emplace(schedule);
  if (!is_new) return it->second;
  driver::Unit unit;
  const auto program = load(subject_, unit);
  const auto parsed = schedule::parse_schedule(schedule, unit.pool);
  if (!program || !parsed) return it->second;
  const auto running = running_alternatives(*program, schedule, subject_, unit);
  for (const schedule::Neighbour& n : schedule::neighbours(*parsed, ir::target_of(*program))) {
    if (running.empty() || running.contains({n.kernel, n.alternative + 1}))
      it->second.push_back({schedule::print(n.schedule), n.name});
  }
  return it->second;
}

std::optional<Proposal> ScheduleSpace::mutated(const std::string& schedule, base::Random& random) {
  const std::vector<Proposal>& others = others_of(schedule);
  if (others.empty()) return std::nullopt;
  const auto pick = random.integer(0, static_cast<int64_t>(others.size()) - 1);
  const Proposal& other = others[static_cast<size_t>(pick)];
  return legal(other.schedule, other.name, 0);
}

std::vector<Proposal> ScheduleSpace::neighbours(const std::string& schedule) {
  std::vector<Proposal> out;
  for (const Proposal& p : others_of(schedule)) {
    if (auto found = legal(p.schedule, p.name, 0)) out.push_back(std::move(*found));
  }
  return out;
}

std::optional<Proposal> ScheduleSpace::crossed(const std::string& a, const std::string& b,
                                               base::Random& random) {
  driver::Unit unit;
  const auto one = schedule::parse_schedule(a, unit.pool);
  const auto other = schedule::parse_schedule(b, unit.pool);
  const auto mixed = one && other ? schedule::crossed(*one, *other, random) : std::nullopt;
  return mixed ? legal(schedule::print(*mixed), "a mixture", 0) : std::nullopt;
}

}  // namespace nautilus::tune

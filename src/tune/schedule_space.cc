// SPDX-License-Identifier: Apache-2.0
#include "tune/schedule_space.h"

#include <fmt/format.h>

#include <cctype>

#include "compile/kernels.h"
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

// The kernels that a plan launches at the program's hints, with the CTAs of each, as a hash.
std::string launched(const ir::Program& kernels, const Subject& subject, driver::Unit& unit) {
  ir::Environment env;
  for (const ir::Op& op : kernels.body) {
    const auto* d = op.get<ir::Dim>();
    if (d && d->hint) env.sizes.emplace(d->name.str(), *d->hint);
  }
  diag::Sink ignored(unit.sources);
  if (!ir::complete(kernels, {}, env, ignored)) return "";
  const auto sms = subject.emulates ? subject.multiprocessors
                                    : static_cast<int>(ir::target_of(kernels).board.sms);
  std::string text;
  for (const driver::PlannedLaunch& launch : driver::planned_launches(kernels, env, sms)) {
    if (launch.grid == 0) continue;
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
  driver::complete(*scheduled, unit);
  return Proposal{schedule::print(scheduled->decisions), std::move(name), predicted,
                  launched(*kernels, subject_, unit)};
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
  const auto add = [&](const std::vector<schedule::Swept>& found) {
    for (const schedule::Swept& s : found)
      candidates_->push_back({schedule::print(s.schedule), s.name, s.cycles});
  };
  add(schedule::sweep_candidates(first->decisions, first->kernels, first->rounded, target,
                                 unit.pool));
  add(schedule::sweep_lines(first->decisions, target));
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

std::optional<Proposal> ScheduleSpace::mutated(const std::string& schedule, base::Random& random) {
  driver::Unit unit;
  const auto program = load(subject_, unit);
  const auto parsed = schedule::parse_schedule(schedule, unit.pool);
  if (!program || !parsed) return std::nullopt;
  const auto others = schedule::neighbours(*parsed, ir::target_of(*program));
  if (others.empty()) return std::nullopt;
  const auto pick = random.integer(0, static_cast<int64_t>(others.size()) - 1);
  const schedule::Neighbour& other = others[static_cast<size_t>(pick)];
  return legal(schedule::print(other.schedule), other.name, 0);
}

std::vector<Proposal> ScheduleSpace::neighbours(const std::string& schedule) {
  std::vector<Proposal> out;
  driver::Unit unit;
  const auto program = load(subject_, unit);
  const auto parsed = schedule::parse_schedule(schedule, unit.pool);
  if (!program || !parsed) return out;
  for (const schedule::Neighbour& n : schedule::neighbours(*parsed, ir::target_of(*program))) {
    if (auto p = legal(schedule::print(n.schedule), n.name, 0)) out.push_back(std::move(*p));
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

// SPDX-License-Identifier: Apache-2.0
#include "tune/schedule_space.h"

#include <cctype>

#include "driver/kernels/scheduling.h"
#include "ir/target_of.h"
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

}  // namespace

// In a unit of its own: what a search leaves behind would grow without end.
std::optional<Proposal> ScheduleSpace::legal(const std::string& text, std::string name,
                                             double predicted) {
  driver::Unit unit;
  const auto program = load(subject_, unit);
  if (!program) return std::nullopt;
  std::string error;
  auto scheduled = driver::replay_schedule(*program, text, unit, &error);
  if (scheduled) error = driver::refused_lines(*scheduled, unit);
  if (!scheduled || !error.empty()) {
    if (error.empty() && !unit.sink.all().empty()) error = unit.sink.all()[0].message;
    ++refusals_[cause_of(error)];
    return std::nullopt;
  }
  driver::complete(*scheduled, unit);
  return Proposal{schedule::print(scheduled->decisions), std::move(name), predicted};
}

std::string ScheduleSpace::own_choice() {
  driver::Unit unit;
  const auto program = load(subject_, unit);
  auto first = program ? driver::first_schedule(*program, unit) : std::nullopt;
  if (!first) return "";
  driver::complete(*first, unit);
  return schedule::print(first->decisions);
}

std::vector<Proposal> ScheduleSpace::seeds() {
  std::vector<Proposal> out;
  driver::Unit unit;
  const auto program = load(subject_, unit);
  auto first = program ? driver::first_schedule(*program, unit) : std::nullopt;
  if (!first) return out;
  auto candidates = schedule::sweep_candidates(first->decisions, first->kernels, first->rounded,
                                               ir::target_of(*program), unit.pool);
  for (schedule::Swept& s : schedule::sweep_lines(first->decisions, ir::target_of(*program)))
    candidates.push_back(std::move(s));
  driver::complete(*first, unit);
  out.push_back({schedule::print(first->decisions), "the compiler's choice", 0});
  for (const schedule::Swept& s : candidates) {
    if (auto p = legal(schedule::print(s.schedule), s.name, s.cycles)) out.push_back(std::move(*p));
  }
  return out;
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

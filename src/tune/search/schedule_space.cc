// SPDX-License-Identifier: Apache-2.0
#include "tune/search/schedule_space.h"

#include <algorithm>
#include <cctype>

#include "driver/kernels/kernel_forms.h"
#include "driver/kernels/scheduling.h"
#include "ir/target_of.h"
#include "schedule/choose/sweep.h"
#include "schedule/search/neighbours.h"

namespace nautilus::tune {
namespace {

// Kernels that are predicted to take so many times as long as the first choice are not tried: a sum
// by one thread may take seconds. A guess.
constexpr double kHopeless = 4;

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

Lower lower_here(const Subject& subject) {
  return [&subject](const std::vector<std::string>& texts) {
    std::vector<Lowered> out;
    for (const std::string& text : texts) out.push_back(tune::lower(subject, text));
    return out;
  };
}

std::optional<std::string> ScheduleSpace::own_choice(std::string* error) {
  if (own_choice_.empty()) {
    const Lowered own = lower_({""}).at(0);
    own_choice_ = own.schedule;
    *error = own.refusal;
  }
  return own_choice_.empty() ? std::nullopt : std::optional(own_choice_);
}

std::vector<Proposal> ScheduleSpace::seeds() {
  std::vector<Proposal> out;
  std::string ignored;
  const auto own = own_choice(&ignored);
  if (!own) return out;
  out.push_back({*own, "the compiler's choice"});
  out.insert(out.end(), more_.begin(), more_.end());
  driver::Unit unit;
  const auto program = load(subject_, unit);
  const auto first = program ? driver::first_schedule(*program, unit) : std::nullopt;
  if (!first) return out;
  const target::Target& target = ir::target_of(*program);
  for (const schedule::Swept& s : schedule::sweep_candidates(first->decisions, first->kernels,
                                                             first->rounded, target, unit.pool))
    out.push_back({schedule::print(s.schedule), s.name, s.cycles});
  const std::vector<driver::KernelForms> forms = driver::kernel_forms(*first, unit);
  for (size_t k = 1; k < forms.size(); ++k) {
    const schedule::Swept& s = forms[k].swept;
    if (s.cycles > kHopeless * forms[0].swept.cycles && forms[0].swept.cycles > 0) continue;
    out.push_back({schedule::print(s.schedule), s.name, s.cycles});
  }
  return out;
}

std::vector<Proposal> ScheduleSpace::lower(const std::vector<Proposal>& raw) {
  std::vector<std::string> texts;
  for (const Proposal& p : raw) texts.push_back(p.schedule);
  const std::vector<Lowered> answers = lower_(texts);
  std::vector<Proposal> out;
  for (size_t k = 0; k < raw.size(); ++k) {
    const Lowered& l = answers[k];
    if (l.schedule.empty()) {
      ++refusals_[cause_of(l.refusal)];
      continue;
    }
    running_.insert_or_assign(l.schedule, l.running);
    out.push_back({l.schedule, raw[k].name, raw[k].predicted, l.kernels, l.features, l.running});
  }
  return out;
}

std::vector<Proposal> ScheduleSpace::neighbours(const std::string& schedule) {
  driver::Unit unit;
  const auto program = load(subject_, unit);
  const auto parsed = schedule::parse_schedule(schedule, unit.pool);
  if (!program || !parsed) return {};
  // One of an earlier search was not lowered by this one.
  if (!running_.contains(schedule)) lower({{schedule, ""}});
  const auto& running = running_[schedule];
  std::vector<Proposal> out;
  for (const schedule::Neighbour& n : schedule::neighbours(*parsed, ir::target_of(*program))) {
    const std::pair<std::string, size_t> changed(n.kernel, n.alternative);
    // Nobody knows, or it changes what runs.
    if (running.empty() || n.kernel.empty() ||
        std::find(running.begin(), running.end(), changed) != running.end())
      out.push_back({schedule::print(n.schedule), n.name});
  }
  return out;
}

std::optional<Proposal> ScheduleSpace::crossed(const std::string& a, const std::string& b,
                                               base::Random& random) {
  driver::Unit unit;
  const auto one = schedule::parse_schedule(a, unit.pool);
  const auto other = schedule::parse_schedule(b, unit.pool);
  const auto mixed = one && other ? schedule::crossed(*one, *other, random) : std::nullopt;
  if (!mixed) return std::nullopt;
  return Proposal{schedule::print(*mixed), "a mixture"};
}

}  // namespace nautilus::tune

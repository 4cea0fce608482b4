// SPDX-License-Identifier: Apache-2.0
#include "driver/kernels/sweep.h"

#include <fmt/format.h>

#include "compile/manager.h"
#include "driver/kernels/kernel_forms.h"
#include "driver/kernels/scheduling.h"
#include "ir/target_of.h"
#include "schedule/choose/sweep.h"
#include "schedule/text/holes.h"
#include "schedule/text/schedule.h"
#include "spec/equations_hash.h"

namespace nautilus::driver {
namespace {

// Why the schedule has no kernels, or an empty text.
std::string refusal(const ir::Program& program, const schedule::Schedule& decisions, Unit& unit) {
  std::string why;
  const auto built = replay(program, decisions, unit, &why);
  return built ? refused_lines(*built, unit) : why;
}

// Tries candidates until `limit` have kernels.
class Trial {
 public:
  Trial(const ir::Program& program, size_t limit, Unit& unit)
      : program_(program), limit_(limit), unit_(unit) {}

  bool is_over() const { return found_ == limit_; }

  void add(const schedule::Schedule& decisions, const std::string& name, double cycles) {
    const std::string why = refusal(program_, decisions, unit_);
    const std::string predicted = cycles >= 1 ? fmt::format(", {:.0f} cycles", cycles) : "";
    const std::string text = fmt::format("# {}{}\n{}", name, predicted, print(decisions));
    found_ += why.empty() ? 1 : 0;
    swept_.push_back({name, why.empty() ? text : "", why});
  }

  void refuse(const std::string& name, const std::string& why) {
    swept_.push_back({name, "", why});
  }

  std::vector<SweptSchedule> take() { return std::move(swept_); }

 private:
  const ir::Program& program_;
  size_t limit_;
  Unit& unit_;
  size_t found_ = 0;
  std::vector<SweptSchedule> swept_;
};

}  // namespace

std::optional<std::vector<SweptSchedule>> sweep(const ir::Program& program, SweepOf what,
                                                size_t limit, Unit& unit) {
  const auto first = first_schedule(program, unit);
  if (!first) return std::nullopt;
  std::vector<schedule::Swept> all;
  const auto add = [&](std::vector<schedule::Swept> more) {
    for (schedule::Swept& s : more) all.push_back(std::move(s));
  };
  std::vector<schedule::Swept> others;
  for (KernelForms& k : kernel_forms(*first, unit)) others.push_back(std::move(k.swept));
  if (!others.empty()) others.erase(others.begin());  // the first schedule
  if (what == SweepOf::Everything) {
    const target::Target& target = ir::target_of(program);
    add(schedule::sweep_candidates(first->decisions, first->kernels, first->rounded, target,
                                   unit.pool));
    // Other forms of the program and of kernels without tiles are few, and far from the best
    // prediction: they follow it directly.
    std::vector<schedule::Swept> forms = schedule::sweep_program_lines(first->decisions);
    forms.insert(forms.end(), others.begin(), others.end());
    all.insert(all.begin() + (all.empty() ? 0 : 1), forms.begin(), forms.end());
    add(schedule::sweep_lines(first->decisions, target));
  } else {
    add(std::move(others));
  }
  Trial trial(program, limit, unit);
  for (const schedule::Swept& s : all) {
    if (trial.is_over()) break;
    trial.add(s.schedule, s.name, s.cycles);
  }
  return trial.take();
}

std::optional<std::vector<SweptSchedule>> sweep_holes(const ir::Program& program,
                                                      std::string_view schedule, size_t limit,
                                                      Unit& unit, std::string* error) {
  const auto filled = schedule::fill_holes(schedule);
  if (!filled) {
    *error = filled.rejection().message;
    return std::nullopt;
  }
  // An error of the text, or of its program, is an error of every filling.
  const auto first = schedule::parse_schedule((*filled)[0].text, unit.pool);
  if (!first) {
    *error = first.rejection().message;
    return std::nullopt;
  }
  Trial trial(program, limit, unit);
  for (const schedule::Filling& f : *filled) {
    if (trial.is_over()) break;
    const auto parsed = schedule::parse_schedule(f.text, unit.pool);
    if (!parsed) {
      trial.refuse(f.name, parsed.rejection().message);
      continue;
    }
    schedule::Schedule decisions = *parsed;
    // One of version 1 has none.
    if (decisions.equations.empty()) decisions.equations = spec::equations_hash(program);
    trial.add(decisions, f.name.empty() ? "as it is" : f.name, 0);
  }
  return trial.take();
}

std::string sweep_text(const std::vector<SweptSchedule>& swept, bool has_refused) {
  std::string out;
  for (const SweptSchedule& s : swept) {
    if (s.why.empty()) {
      out += (out.empty() ? "" : "\n") + s.text;
    } else if (has_refused) {
      out += fmt::format("{}# {}: {}\n", out.empty() ? "" : "\n", s.name, s.why);
    }
  }
  return out;
}

}  // namespace nautilus::driver

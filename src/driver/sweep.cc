// SPDX-License-Identifier: Apache-2.0
#include "driver/sweep.h"

#include <fmt/format.h>

#include "driver/pipeline.h"
#include "driver/scheduling.h"
#include "schedule/holes.h"
#include "schedule/sweep.h"

namespace nautilus::driver {
namespace {

// Why the schedule has no kernels, or an empty text.
std::string refusal(const schedule::Schedule& decisions, const ir::Program& unscheduled,
                    Unit& unit) {
  const auto built = schedule::apply_schedule(unscheduled, decisions, unit.pool);
  if (!built) return built.rejection().message;
  diag::Sink refused(unit.sources);
  ir::PassContext context{unit.pool, refused, {}};
  if (lower_to("matile", built->program, context)) return "";
  return refused.all().empty() ? "it has no kernel" : refused.all()[0].message;
}

// Tries candidates until so many have kernels.
class Trial {
 public:
  Trial(const ir::Program& unscheduled, size_t limit, Unit& unit)
      : unscheduled_(unscheduled), limit_(limit), unit_(unit) {}

  bool is_over() const { return found_ == limit_; }

  void add(const schedule::Schedule& decisions, const std::string& name, double cycles) {
    const std::string why = refusal(decisions, unscheduled_, unit_);
    const std::string predicted = cycles >= 1 ? fmt::format(", {:.0f} cycles", cycles) : "";
    const std::string text = fmt::format("# {}{}\n{}", name, predicted, print(decisions));
    found_ += why.empty() ? 1 : 0;
    swept_.push_back({name, why.empty() ? text : "", why});
  }

  std::vector<SweptSchedule> take() { return std::move(swept_); }

 private:
  const ir::Program& unscheduled_;
  size_t limit_;
  Unit& unit_;
  size_t found_ = 0;
  std::vector<SweptSchedule> swept_;
};

}  // namespace

std::optional<std::vector<SweptSchedule>> sweep(const ir::Program& program, size_t limit,
                                                Unit& unit) {
  const auto first = first_schedule(program, unit);
  if (!first) return std::nullopt;
  Trial trial(first->unscheduled, limit, unit);
  for (const schedule::Swept& s :
       schedule::sweep_candidates(first->decisions, first->kernels, first->unscheduled,
                                  first->rounded, schedule::kHopper, unit.pool)) {
    if (trial.is_over()) break;
    trial.add(s.schedule, s.name, s.cycles);
  }
  return trial.take();
}

std::optional<std::vector<SweptSchedule>> sweep_holes(const ir::Program& program,
                                                      std::string_view schedule, size_t limit,
                                                      Unit& unit, std::string* error) {
  const auto open = schedule::parse_schedule(schedule);
  const auto filled = open ? schedule::fill_holes(*open) : open.rejection();
  if (!filled) {
    *error = filled.rejection().message;
    return std::nullopt;
  }
  const auto unscheduled = unscheduled_for(program, *open, unit);
  if (!unscheduled) return std::nullopt;
  if (open->program != program.name || open->hash != schedule::program_hash(*unscheduled)) {
    // Any filling is refused for that.
    const auto why = schedule::apply_schedule(*unscheduled, (*filled)[0].schedule, unit.pool);
    *error = why.rejection().message;
    return std::nullopt;
  }
  Trial trial(*unscheduled, limit, unit);
  for (const schedule::Filling& f : *filled) {
    if (trial.is_over()) break;
    trial.add(f.schedule, f.name.empty() ? "as it is" : f.name, 0);
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

// SPDX-License-Identifier: Apache-2.0
// nautilus tune --dry-run: what a search begins with and about how long it takes, without a trial.
#include <fmt/format.h>

#include <filesystem>

#include "json_output.h"
#include "tune/search/schedule_space.h"
#include "tune/work/pace.h"
#include "tune_command.h"

namespace nautilus::tool {
namespace {

// Seconds of a trial, and where that is known from.
struct Pace {
  double seconds = tune::kUsualTrialSeconds;
  std::string source = "as on an H200 with 16 cores";
};

Pace pace_of(const TuneCommand& o, const tune::Problem& problem) {
  Pace out;
  const std::string path = o.database.empty() ? tune::default_database() : o.database;
  std::error_code ignored;
  if (o.no_database || path.empty() || !std::filesystem::exists(path, ignored)) return out;
  std::string error;  // a search would say it
  const auto database = tune::Database::open(path, tune::Access::Read, &error);
  const auto trials = database ? database->find({}, &error) : std::nullopt;
  const auto seconds = trials ? tune::seconds_of_a_trial(*trials, problem.machine) : std::nullopt;
  if (!seconds) return out;
  return {*seconds, fmt::format("as earlier trials on {}", problem.machine)};
}

void print_candidates(const TuneCommand& o, const tune::Subject& subject,
                      const tune::Problem& problem) {
  tune::ScheduleSpace space(subject, tune::lower_here(subject));
  std::vector<tune::Proposal> legal;
  for (const tune::Proposal& raw : space.seeds()) {
    for (tune::Proposal& p : space.lower({raw})) legal.push_back(std::move(p));
  }
  const size_t steps = legal.empty() ? 0 : space.neighbours(legal[0].schedule).size();
  const Pace pace = pace_of(o, problem);
  const double minutes = static_cast<double>(legal.size() + steps) * pace.seconds / 60;
  const std::string sizes = tune::sizes_text(problem.sizes);
  if (o.json) {
    for (const tune::Proposal& p : legal) {
      nlohmann::json j = {{"event", "candidate"}, {"sizes", problem.sizes}, {"name", p.name}};
      if (p.predicted > 0) j["cycles"] = p.predicted;
      write_json_line(j);
    }
    write_json_line({{"event", "end"},
                     {"sizes", problem.sizes},
                     {"candidates", legal.size()},
                     {"steps", steps},
                     {"minutes", minutes},
                     {"seconds_of_a_trial", pace.seconds}});
    return;
  }
  fmt::print("{}: by the cost model, best first\n", sizes);
  for (const tune::Proposal& p : legal)
    fmt::print("  {}{}\n", p.name,
               p.predicted > 0 ? fmt::format(", {:.0f} cycles", p.predicted) : "");
  fmt::print(
      "then from the fastest on; {} schedules are one line away from the compiler's choice, some "
      "of which are refused\n"
      "{:.1f} minutes for all of these, {:.1f} s for each trial ({})\n",
      steps, minutes, pace.seconds, pace.source);
}

}  // namespace

int tune_dry_run(const TuneCommand& o, const std::vector<tune::ShapeSubject>& shapes,
                 double seconds) {
  for (const tune::ShapeSubject& s : shapes) {
    std::string error;
    const auto problem = tune::problem_of(s.subject, &error);
    if (!problem) return report_failure(o.json, error);
    print_candidates(o, s.subject, *problem);
  }
  if (!o.json)
    fmt::print("a search stops after {:.1f} minutes at the latest (--budget)\n", seconds / 60);
  return kOk;
}

}  // namespace nautilus::tool

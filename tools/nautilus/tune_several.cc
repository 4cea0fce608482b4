// SPDX-License-Identifier: Apache-2.0
// nautilus tune with several shapes: one budget, one schedule that chooses by sizes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "json_output.h"
#include "schedule/text/sized_schedules.h"
#include "tune_command.h"

namespace nautilus::tool {
namespace {

void print_shapes_json(const tune::ShapesResult& r) {
  const auto print = [](const nlohmann::json& j) {
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  };
  for (const tune::ShapeResult& s : r.shapes) {
    nlohmann::json j = {{"event", "shape"},
                        {"sizes", s.sizes},
                        {"weight", s.weight},
                        {"trials", s.tuned.trials},
                        {"best", s.tuned.winner.median},
                        {"first", s.tuned.first},
                        {"floor", s.tuned.floor},
                        {"schedule", s.tuned.winner.schedule}};
    for (const auto& [cause, n] : s.tuned.not_timed) j["not_timed"][cause] = n;
    print(j);
  }
  print({{"event", "end"},
         {"reason", r.ended},
         {"seconds", r.seconds},
         {"trials", r.trials},
         {"best", r.best},
         {"first", r.first},
         {"schedule", r.schedule}});
}

void print_shapes(const tune::ShapesResult& r, bool is_emulated) {
  fmt::print("{}: {} trials in {:.0f} s, {} shapes\n", r.ended, r.trials, r.seconds,
             r.shapes.size());
  for (const tune::ShapeResult& s : r.shapes) {
    const tune::TuneResult& t = s.tuned;
    fmt::print("  {} weight {:g}: {} trials, best {}{}\n", tune::sizes_text(s.sizes), s.weight,
               t.trials, time_text(t.winner.median, is_emulated),
               t.first > 0 ? fmt::format("; the compiler's choice: {}, {:.3f} times as long",
                                         time_text(t.first, is_emulated), t.first / t.winner.median)
                           : "");
  }
  fmt::print("all by their weights: {}{}\n", time_text(r.best, is_emulated),
             r.first > 0 ? fmt::format("; the compiler's choice: {}, {:.3f} times as long",
                                       time_text(r.first, is_emulated), r.first / r.best)
                         : "");
  if (!schedule::is_sized(r.schedule))
    fmt::print("the compiler's choice is the best for all shapes\n");
}

}  // namespace

int tune_several(const TuneCommand& o, const std::vector<tune::ShapeSubject>& shapes,
                 double seconds, tune::Database* database) {
  tune::TuneOptions options = tune_options(o.search, o.subject, seconds);
  options.record = o.record;
  TuneReport report(o.json, o.subject.emulate, seconds, true);
  std::vector<tune::Trial> trials;
  const auto tell = [&](const tune::Progress& p) {
    if (p.trial) trials.push_back(*p.trial);
    report(p);
  };
  std::string error;
  const auto result = tune::tune_shapes(
      shapes, options, {database, tell, [] { return is_tuning_interrupted(); }}, &error);
  if (!o.html.empty()) {
    std::vector<TunedPage> pages;
    for (const tune::ShapeSubject& s : shapes) {
      std::string ignored;
      const auto problem = tune::problem_of(s.subject, &ignored);
      if (!problem) continue;
      TunedPage page{&s.subject, *problem, {}};
      for (const tune::ShapeResult& r :
           result ? result->shapes : std::vector<tune::ShapeResult>()) {
        if (r.sizes == problem->sizes) page.not_timed = r.tuned.not_timed;
      }
      pages.push_back(std::move(page));
    }
    if (!write_tuned_pages(o.html, pages, trials, database)) return kUsageError;
  }
  if (!result) {
    return report_failure(o.json, error);
  }
  o.json ? print_shapes_json(*result) : print_shapes(*result, o.subject.emulate);
  return write_tuned(o, result->schedule) ? kOk : kUsageError;
}

}  // namespace nautilus::tool

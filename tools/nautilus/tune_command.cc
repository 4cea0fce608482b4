// SPDX-License-Identifier: Apache-2.0
#include "tune_command.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tune/report/report.h"

namespace nautilus::tool {
namespace {

std::atomic<bool> is_interrupted = false;

}  // namespace

void interrupt_tuning_by_signal() {
  signal(SIGINT, [](int) { is_interrupted = true; });
}

bool is_tuning_interrupted() { return is_interrupted; }

std::string time_text(double time, bool is_emulated) {
  return is_emulated ? fmt::format("{:.0f} steps", time) : fmt::format("{:.4f} ms", time);
}

void TuneReport::operator()(const tune::Progress& p) {
  is_json_ ? as_json(p) : as_text(p);
  std::fflush(stdout);
}

void TuneReport::as_json(const tune::Progress& p) const {
  nlohmann::json j = {{"event", "trial"},
                      {"seconds", p.seconds},
                      {"trials", p.trials},
                      {"name", p.name},
                      {"verdict", tune::word(p.trial->verdict)}};
  if (has_several_) j["sizes"] = p.trial->problem.sizes;
  if (p.trial->verdict == tune::Verdict::Timed) j["time"] = tune::median(p.trial->times);
  if (!p.trial->reason.empty()) j["reason"] = p.trial->reason;
  if (p.best > 0) j["best"] = p.best;
  if (p.first > 0) j["first"] = p.first;
  fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void TuneReport::as_text(const tune::Progress& p) {
  const std::string sizes = tune::sizes_text(p.trial->problem.sizes);
  double& last_best = last_best_[sizes];
  if (p.trial->verdict != tune::Verdict::Timed) ++failures_[std::string(word(p.trial->verdict))];
  const bool is_better = p.best > 0 && (last_best == 0 || p.best < last_best);
  if (!is_better && p.seconds - last_ < 5) return;
  last_ = p.seconds;
  last_best = p.best;
  std::string failures;
  for (const auto& [verdict, n] : failures_) failures += fmt::format("  {} {}", n, verdict);
  fmt::print("{:6.1f} s  trial {:4}  {:.1f} a second  {}best {}{}{}  {:.0f} s left  {}\n",
             p.seconds, p.trials, static_cast<double>(p.trials) / std::max(p.seconds, 1e-3),
             has_several_ ? sizes + " " : "", p.best > 0 ? time_text(p.best, is_emulated_) : "none",
             p.first > 0 && p.best > 0
                 ? fmt::format(" ({:.3f} of the compiler's choice)", p.best / p.first)
                 : "",
             failures, std::max(budget_ - p.seconds, 0.0), is_better ? p.name : "");
}

bool write_tuned_pages(const std::string& path, const std::vector<TunedPage>& pages,
                       const std::vector<tune::Trial>& trials, const tune::Database* database) {
  std::string error;
  std::vector<tune::ReportInput> inputs;
  for (const TunedPage& page : pages) {
    std::vector<tune::Trial> own;
    if (database) {
      auto kept = database->find(tune::Query::of(page.problem), &error);
      if (!kept) {
        usage_error(error);
        return false;
      }
      own = std::move(*kept);
    } else {
      std::copy_if(trials.begin(), trials.end(), std::back_inserter(own),
                   [&](const tune::Trial& t) { return t.problem == page.problem; });
    }
    tune::ReportInput input;
    input.problem = page.problem;
    if (!own.empty()) input.program = own.back().program;
    input.trials = std::move(own);
    input.floors = tune::floors_of(*page.subject);
    constexpr std::string_view kNotLegal = "not legal: ";
    for (const auto& [cause, n] : page.not_timed) {
      if (cause.starts_with(kNotLegal)) input.not_legal.emplace(cause.substr(kNotLegal.size()), n);
    }
    inputs.push_back(std::move(input));
  }
  if (base::write_file_atomic(path, tune::html_page(inputs), &error)) return true;
  usage_error(error);
  return false;
}

bool write_tuned(const TuneCommand& o, const std::string& schedule) {
  if (!o.html.empty() && !o.json) fmt::print("wrote {}\n", o.html);
  if (o.output.empty()) return true;
  std::string error;
  if (!base::write_file_atomic(o.output, schedule, &error)) {
    usage_error(error);
    return false;
  }
  if (!o.json) fmt::print("wrote {}\n", o.output);
  return true;
}

}  // namespace nautilus::tool

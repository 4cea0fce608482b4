// SPDX-License-Identifier: Apache-2.0
// nautilus tune: the fastest schedule of a program at sizes, found by measuring.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "command.h"
#include "tune/report/report.h"
#include "tune/search/schedule_space.h"
#include "tune/tuner.h"
#include "tune/work/budget.h"
#include "tune_subject.h"

namespace nautilus::tool {
namespace {

struct TuneOptions {
  SubjectOptions subject;
  std::string budget = "120s";
  int64_t trials = 0;
  double trial_seconds = 60;
  std::string search = tune::TuneOptions{}.search;
  std::string database;
  std::string output;
  std::string record;
  std::string html;
  int jobs = 0;
  bool no_database = false;
  bool json = false;
  bool dry_run = false;
};

std::atomic<bool> is_interrupted = false;

std::string time_text(double time, bool is_emulated) {
  return is_emulated ? fmt::format("{:.0f} steps", time) : fmt::format("{:.4f} ms", time);
}

class Report {
 public:
  Report(bool is_json, bool is_emulated, double budget)
      : is_json_(is_json), is_emulated_(is_emulated), budget_(budget) {}

  void operator()(const tune::Progress& p) {
    is_json_ ? as_json(p) : as_text(p);
    std::fflush(stdout);
  }

 private:
  void as_json(const tune::Progress& p) {
    nlohmann::json j = {{"event", "trial"},
                        {"seconds", p.seconds},
                        {"trials", p.trials},
                        {"name", p.name},
                        {"verdict", tune::word(p.trial->verdict)}};
    if (p.trial->verdict == tune::Verdict::Timed) j["time"] = tune::median(p.trial->times);
    if (!p.trial->reason.empty()) j["reason"] = p.trial->reason;
    if (p.best > 0) j["best"] = p.best;
    if (p.first > 0) j["first"] = p.first;
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  // A line when something is better, and one every few seconds.
  void as_text(const tune::Progress& p) {
    const bool is_better = p.best > 0 && (last_best_ == 0 || p.best < last_best_);
    if (!is_better && p.seconds - last_ < 5) return;
    last_ = p.seconds;
    last_best_ = p.best;
    fmt::print("{:6.1f} s  trial {:4}  {:.1f} a second  best {}{}  {:.0f} s left  {}\n", p.seconds,
               p.trials, static_cast<double>(p.trials) / std::max(p.seconds, 1e-3),
               p.best > 0 ? time_text(p.best, is_emulated_) : "none",
               p.first > 0 && p.best > 0
                   ? fmt::format(" ({:.3f} of the compiler's choice)", p.best / p.first)
                   : "",
               std::max(budget_ - p.seconds, 0.0), is_better ? p.name : "");
  }

  bool is_json_;
  bool is_emulated_;
  double budget_;
  double last_ = -10;
  double last_best_ = 0;
};

int print_candidates(const tune::Subject& subject) {
  tune::ScheduleSpace space(subject, tune::lower_here(subject));
  fmt::print("By the cost model, best first; then others, one line away from the fastest:\n");
  for (const tune::Proposal& raw : space.seeds()) {
    for (const tune::Proposal& p : space.lower({raw}))
      fmt::print("  {}{}\n", p.name,
                 p.predicted > 0 ? fmt::format(", {:.0f} cycles", p.predicted) : "");
  }
  return kOk;
}

void print_result(const TuneOptions& o, const tune::TuneResult& r) {
  const bool is_emulated = o.subject.emulate;
  if (o.json) {
    nlohmann::json j = {{"event", "end"},
                        {"reason", r.ended},
                        {"seconds", r.seconds},
                        {"trials", r.trials},
                        {"best", r.winner.median},
                        {"first", r.first},
                        {"floor", r.floor},
                        {"low", r.winner.low},
                        {"high", r.winner.high},
                        {"samples", r.winner.samples},
                        {"schedule", r.winner.schedule}};
    for (const auto& [cause, n] : r.not_timed) j["not_timed"][cause] = n;
    fmt::print("{}\n", j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  std::vector<std::pair<int64_t, std::string>> causes;
  for (const auto& [cause, n] : r.not_timed) causes.emplace_back(-n, cause);
  std::sort(causes.begin(), causes.end());
  constexpr size_t kShown = 8;
  for (size_t k = 0; k < std::min(causes.size(), kShown); ++k)
    fmt::print("  {:5} {}\n", -causes[k].first, causes[k].second);
  if (causes.size() > kShown) fmt::print("        {} more causes\n", causes.size() - kShown);
  fmt::print("{}: {} trials in {:.0f} s, {} schedules timed\n", r.ended, r.trials, r.seconds,
             r.winner.candidates);
  fmt::print("best: {} ({} to {}, {} samples){}\n", time_text(r.winner.median, is_emulated),
             time_text(r.winner.low, is_emulated), time_text(r.winner.high, is_emulated),
             r.winner.samples,
             r.first > 0 ? fmt::format("; the compiler's choice: {}, {:.3f} times as long",
                                       time_text(r.first, is_emulated), r.first / r.winner.median)
                         : "");
  if (r.floor > 0)
    fmt::print("the machine takes {} at least: {:.0f} % of the best\n",
               time_text(r.floor, is_emulated), 100 * r.floor / r.winner.median);
}

// A page about all trials of the problem: those of the database, or, without one, of this search.
bool write_html(const std::string& path, const tune::Subject& subject, const tune::Problem& problem,
                std::vector<tune::Trial> trials, const tune::Database* database,
                const std::optional<tune::TuneResult>& result, std::string* error) {
  if (database) {
    auto kept = database->find(tune::Query::of(problem), error);
    if (!kept) return false;
    trials = std::move(*kept);
  }
  tune::ReportInput input;
  input.problem = problem;
  if (!trials.empty()) input.program = trials.back().program;
  input.trials = std::move(trials);
  input.floors = tune::floors_of(subject);
  constexpr std::string_view kNotLegal = "not legal: ";
  for (const auto& [cause, n] : result ? result->not_timed : std::map<std::string, int64_t>()) {
    if (cause.starts_with(kNotLegal)) input.not_legal.emplace(cause.substr(kNotLegal.size()), n);
  }
  return base::write_file_atomic(path, tune::html_page({std::move(input)}), error);
}

int run_tune(const TuneOptions& o) {
  tune::Subject subject;
  int code = kOk;
  if (!read_subject(o.subject, subject, code)) return code;
  tune::TuneOptions options;
  const auto seconds = tune::seconds_of(o.budget);
  if (!seconds) {
    usage_error(fmt::format("--budget {}: a time such as 90s, 2m or 1h", o.budget));
    return kUsageError;
  }
  std::string error;
  const auto problem = tune::problem_of(subject, &error);
  if (!problem) {
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  if (o.dry_run) return print_candidates(subject);
  options.search = o.search;
  options.seconds = *seconds;
  options.trials = o.trials;
  options.trial_seconds = o.trial_seconds;
  options.seed = o.subject.seed;
  options.record = o.record;
  // One core is for what measures.
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 2u)) - 1;
  options.jobs = o.subject.emulate ? 1 : o.jobs > 0 ? o.jobs : cores;
  options.worker = {std::filesystem::read_symlink("/proc/self/exe").string(), "propose"};
  for (std::string& word : subject_arguments(o.subject)) options.worker.push_back(std::move(word));
  const std::string path = o.database.empty() ? tune::default_database() : o.database;
  std::unique_ptr<tune::Database> database;
  if (!o.no_database && !path.empty()) {
    database = tune::Database::open(path, tune::Access::Write, &error);
    if (!database) {
      usage_error(error + "; --no-database keeps nothing");
      return kUsageError;
    }
  }
  signal(SIGINT, [](int) { is_interrupted = true; });
  Report report(o.json, o.subject.emulate, *seconds);
  std::vector<tune::Trial> trials;
  const auto tell = [&](const tune::Progress& p) {
    if (p.trial) trials.push_back(*p.trial);
    report(p);
  };
  const auto result = tune::tune(
      subject, options, database.get(), tell, [] { return is_interrupted.load(); }, &error);
  // Also if nothing could be timed: the page says why.
  std::string html_error;
  if (!o.html.empty() &&
      !write_html(o.html, subject, *problem, trials, database.get(), result, &html_error)) {
    usage_error(html_error);
    return kUsageError;
  }
  if (!result) {
    fmt::print(stderr, "nautilus: {}\n", error);
    return kProgramError;
  }
  print_result(o, *result);
  if (database && !o.json) fmt::print("trials are in {}\n", path);
  if (!o.html.empty() && !o.json) fmt::print("wrote {}\n", o.html);
  if (o.output.empty()) return kOk;
  if (!base::write_file_atomic(o.output, result->winner.schedule, &error)) {
    usage_error(error);
    return kUsageError;
  }
  if (!o.json) fmt::print("wrote {}\n", o.output);
  return kOk;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TuneOptions>();
  CLI::App* c = app.add_subcommand("tune", "Find the fastest schedule of a program by measuring");
  add_subject_options(*c, o->subject);
  c->add_option("--budget", o->budget, "time for everything: 90s, 2m, 1h")->capture_default_str();
  c->add_option("--trials", o->trials, "so many schedules at most")->check(CLI::PositiveNumber);
  c->add_option("--trial-limit", o->trial_seconds, "seconds of one trial before it is stopped")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  std::vector<std::string> names(tune::search_names().begin(), tune::search_names().end());
  c->add_option("--search", o->search, "which schedule is tried next")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  c->add_option("--db", o->database,
                "the database of trials (default: $NAUTILUS_DB, or that of the user)");
  c->add_flag("--no-database", o->no_database, "keep no trials");
  c->add_option("--record", o->record, "add the trials to a file of JSON lines as well");
  c->add_option("--output,-o", o->output, "write the best schedule to a file");
  c->add_option("--html", o->html, "write a page about the trials to a file");
  c->add_option("--jobs", o->jobs,
                "processes that lower and compile at a time (default: all cores)")
      ->check(CLI::PositiveNumber);
  c->add_flag("--json", o->json, "one JSON object for each trial, and one at the end");
  c->add_flag("--dry-run", o->dry_run, "print the first schedules that would be tried, and stop");
  c->footer(
      "A search that is stopped has lost at most the trial that ran; the next one goes on from "
      "there.\n"
      "Example: nautilus tune examples/attention.naut --shape B=1,H=16,M=4096,N=4096 --budget 2m "
      "-o best.sched");
  c->callback([o, &exit_code] { exit_code = run_tune(*o); });
}

}  // namespace nautilus::tool

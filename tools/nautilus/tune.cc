// SPDX-License-Identifier: Apache-2.0
// nautilus tune: the fastest schedule of a program at sizes, found by measuring.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "json_output.h"
#include "tune/work/budget.h"
#include "tune_command.h"

namespace nautilus::tool {
namespace {

void print_result(const TuneCommand& o, const tune::TuneResult& r) {
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

int tune_one(const TuneCommand& o, const tune::Subject& subject, double seconds,
             tune::Database* database) {
  std::string error;
  const auto problem = tune::problem_of(subject, &error);
  if (!problem) {
    return report_failure(o.json, error);
  }
  tune::TuneOptions options = tune_options(o.search, o.subject, seconds);
  options.record = o.record;
  TuneReport report(o.json, o.subject.emulate, seconds);
  std::vector<tune::Trial> trials;
  const auto tell = [&](const tune::Progress& p) {
    if (p.trial) trials.push_back(*p.trial);
    report(p);
  };
  const auto result = tune::tune(
      subject, options, database, tell, [] { return is_tuning_interrupted(); }, &error);
  // Also if nothing could be timed: the page says why.
  if (!o.html.empty()) {
    const TunedPage page{&subject, *problem, result ? result->not_timed : NotTimed()};
    if (!write_tuned_pages(o.html, {page}, trials, database)) return kUsageError;
  }
  if (!result) {
    return report_failure(o.json, error);
  }
  print_result(o, *result);
  return write_tuned(o, result->winner.schedule) ? kOk : kUsageError;
}

// The sizes of --shape and --shapes, each --shape one of them. Prints what is wrong.
bool read_tuned_shapes(const TuneCommand& o, std::vector<tune::WeightedSizes>& out) {
  for (const std::string& text : o.subject.shape) {
    tune::WeightedSizes next;
    if (!parse_sizes({text}, next.sizes)) return false;
    out.push_back(std::move(next));
  }
  if (!o.shapes.empty()) {
    std::string error;
    const auto text = base::read_file(o.shapes, &error);
    const auto list = text ? tune::read_shapes(*text, o.shapes, &error) : std::nullopt;
    if (!list) {
      usage_error(error);
      return false;
    }
    out.insert(out.end(), list->begin(), list->end());
  }
  out = tune::in_order(std::move(out));
  if (out.empty()) out.emplace_back();
  return true;
}

int run_tune(const TuneCommand& o) {
  std::vector<tune::WeightedSizes> shapes;
  if (!read_tuned_shapes(o, shapes)) return kUsageError;
  const auto seconds = tune::seconds_of(o.budget);
  if (!seconds) {
    usage_error(fmt::format("--budget {}: a time such as 90s, 2m or 1h", o.budget));
    return kUsageError;
  }
  std::vector<tune::ShapeSubject> subjects;
  for (const tune::WeightedSizes& shape : shapes) {
    SubjectOptions own = o.subject;
    own.shape.clear();
    if (!shape.sizes.empty()) own.shape = {tune::sizes_text(shape.sizes)};
    tune::ShapeSubject next{{}, shape.weight, proposer(own)};
    int code = kOk;
    if (!read_subject(own, next.subject, code)) return code;
    subjects.push_back(std::move(next));
  }
  std::string error;
  if (o.dry_run) return tune_dry_run(o, subjects, *seconds);
  const std::string path = o.database.empty() ? tune::default_database() : o.database;
  std::unique_ptr<tune::Database> database;
  if (!o.no_database && !path.empty()) {
    database = tune::Database::open(path, tune::Access::Write, &error);
    if (!database) {
      usage_error(error + "; --no-database keeps nothing");
      return kUsageError;
    }
  }
  interrupt_tuning_by_signal();
  const int code = subjects.size() == 1 ? tune_one(o, subjects[0].subject, *seconds, database.get())
                                        : tune_several(o, subjects, *seconds, database.get());
  if (code == kOk && database && !o.json) fmt::print("trials are in {}\n", path);
  return code;
}

}  // namespace

void add_tune(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TuneCommand>();
  CLI::App* c = app.add_subcommand("tune", "Find the fastest schedule of a program by measuring");
  add_subject_options(*c, o->subject);
  c->add_option("--budget", o->budget, "time for everything: 90s, 2m, 1h")->capture_default_str();
  add_search_options(*c, o->search);
  c->add_option("--shapes", o->shapes,
                "a file of sizes with weights, JSON lines or a table: they share the budget, as "
                "several --shape do");
  c->add_option("--db", o->database,
                "the database of trials (default: $NAUTILUS_DB, or that of the user)");
  c->add_flag("--no-database", o->no_database, "keep no trials");
  c->add_option("--record", o->record, "add the trials to a file of JSON lines as well");
  c->add_option("--output,-o", o->output, "write the best schedule to a file");
  c->add_option("--html", o->html, "write a page about the trials to a file");
  c->add_flag("--json", o->json, "one JSON object for each trial, and one at the end");
  c->add_flag(
      "--dry-run", o->dry_run,
      "print the schedules that would be tried first and about how long a search takes, and stop");
  c->footer(
      "A search that is stopped has lost at most the trial that ran; the next one goes on from "
      "there.\n"
      "Several shapes give one schedule that chooses by sizes.\n"
      "Examples:\n"
      "  nautilus tune examples/attention.naut --shape B=1,H=16,M=4096,N=4096 --budget 2m "
      "-o best.sched\n"
      "  nautilus tune golden/gemm_nt.naut --shapes trace.csv --budget 10m -o best.sched");
  c->callback([o, &exit_code] { exit_code = run_tune(*o); });
}

}  // namespace nautilus::tool

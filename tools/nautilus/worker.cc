// SPDX-License-Identifier: Apache-2.0
// nautilus worker: takes jobs of a work list, one after the other, and keeps their trials.
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "json_output.h"
#include "search_options.h"
#include "tune/tuner.h"
#include "tune/work/budget.h"
#include "tune/work/work_list.h"

namespace nautilus::tool {
namespace {

struct WorkerOptions {
  std::string list;
  std::string database;
  std::string part = "1/1";
  std::string budget = "120s";
  std::string lease = "300s";
  SearchOptions search;
  std::string target;
  int sms = 2;
  bool retry = false;
  bool emulate = false;
  bool status = false;
  bool json = false;
};

std::atomic<bool> is_worker_stopped = false;

// `K/N`, K from 1 to N; false if it is something else.
bool parse_part(const std::string& text, size_t& part, size_t& parts) {
  char* end = nullptr;
  const auto k = std::strtol(text.c_str(), &end, 10);
  if (*end != '/') return false;
  const auto n = std::strtol(end + 1, &end, 10);
  part = static_cast<size_t>(k);
  parts = static_cast<size_t>(n);
  return *end == '\0' && k >= 1 && k <= n;
}

class Worker {
 public:
  Worker(const WorkerOptions& o, tune::WorkList& list, tune::Database& database, double budget,
         double lease)
      : o_(o), list_(list), database_(database), budget_(budget), lease_(lease) {}

  // The exit status.
  int run(size_t part, size_t parts) {
    std::string error;
    const std::vector<tune::Job>& jobs = list_.jobs();
    // In the order of the list: who is done looks for the next one from the beginning, since jobs
    // may have been given back.
    for (bool is_busy = true; is_busy && !is_worker_stopped;) {
      is_busy = false;
      for (size_t k = part - 1; k < jobs.size() && !is_worker_stopped; k += parts) {
        if (tried_.contains(jobs[k].line)) continue;
        const auto claim = list_.take(jobs[k], o_.retry, &error);
        if (!error.empty()) return report_failure(o_.json, error);
        if (!claim) continue;
        is_busy = true;
        tried_.insert(jobs[k].line);
        if (!work(jobs[k], *claim, &error)) return report_failure(o_.json, error);
      }
    }
    o_.json ? write_json_line({{"event", "end"}, {"done", done_}, {"failed", failed_}})
            : fmt::print("{} jobs done, {} failed\n", done_, failed_);
    return failed_ > 0 || is_worker_stopped ? kProgramError : kOk;
  }

 private:
  // One job. False, and why, only if its claim cannot be answered.
  bool work(const tune::Job& job, const tune::Claim& claim, std::string* error) {
    o_.json ? write_json_line({{"event", "begin"}, {"line", job.line}, {"job", job.text()}})
            : fmt::print("job of line {}: {}\n", job.line, job.text());
    std::fflush(stdout);
    std::string why = "the program cannot be read";
    std::optional<tune::TuneResult> result;
    {
      const tune::Heartbeat heartbeat(claim, lease_ / 5);
      result = tuned(job, &why);
    }
    if (is_worker_stopped) why = "the worker was stopped";
    if (!result || is_worker_stopped) {
      ++failed_;
      o_.json ? write_json_line({{"event", "failed"}, {"line", job.line}, {"reason", why}})
              : fmt::print("  {}\n", why);
      return list_.give_back(claim, why, error);
    }
    ++done_;
    const auto& best = result->winner;
    nlohmann::json j = {{"job", job.text()},           {"database", o_.database},
                        {"best", best.median},         {"first", result->first},
                        {"trials", result->trials},    {"seconds", result->seconds},
                        {"compiler", NAUTILUS_VERSION}};
    if (!list_.finish(job, j.dump() + "\n", error)) return false;
    j["event"] = "done";
    j["line"] = job.line;
    o_.json ? write_json_line(j)
            : fmt::print("  {:.6g} {}, the compiler's choice {:.6g}; {} trials in {:.0f} s\n",
                         best.median, o_.emulate ? "steps" : "ms", result->first, result->trials,
                         result->seconds);
    return true;
  }

  std::optional<tune::TuneResult> tuned(const tune::Job& job, std::string* error) {
    SubjectOptions s;
    s.file = job.file;
    if (!job.sizes.empty()) s.shape = {tune::sizes_text(job.sizes)};
    s.target = o_.target;
    s.emulate = o_.emulate;
    s.sms = o_.sms;
    tune::Subject subject;
    int ignored = kOk;  // the list may have other jobs
    if (!read_subject(s, subject, ignored)) return std::nullopt;
    const tune::TuneOptions options = tune_options(o_.search, s, job.seconds.value_or(budget_));
    return tune::tune(
        subject, options, &database_, [](const tune::Progress&) {},
        [] { return is_worker_stopped.load(); }, error);
  }

  const WorkerOptions& o_;
  tune::WorkList& list_;
  tune::Database& database_;
  double budget_;
  double lease_;
  std::set<int> tried_;  // lines; a job that fails is not tried for ever
  int done_ = 0;
  int failed_ = 0;
};

int print_status(const tune::WorkList& list, bool is_json) {
  std::string error;
  for (const tune::Job& job : list.jobs()) {
    const auto state = list.state(job, &error);
    if (!state) return report_failure(is_json, error);
    is_json
        ? write_json_line({{"line", job.line}, {"job", job.text()}, {"state", tune::word(*state)}})
        : fmt::print("{:<6} line {}: {}\n", tune::word(*state), job.line, job.text());
  }
  return kOk;
}

int run_worker(const WorkerOptions& o) {
  std::string error;
  auto list = tune::WorkList::read(o.list, &error);
  size_t part = 1;
  size_t parts = 1;
  const auto budget = tune::seconds_of(o.budget);
  const auto lease = tune::seconds_of(o.lease);
  if (list && !parse_part(o.part, part, parts))
    error = fmt::format("--part {}: K/N with K from 1 to N", o.part);
  else if (list && (!budget || !lease || *lease <= 0))
    error = "--budget and --lease are times such as 90s, 2m or 1h";
  if (!error.empty()) {
    usage_error(error);
    return kUsageError;
  }
  list->set_lease(*lease);
  if (o.status) return print_status(*list, o.json);
  if (o.database.empty()) {
    usage_error("--db is needed: where trials are stored");
    return kUsageError;
  }
  const auto database = tune::Database::open(o.database, tune::Access::Write, &error);
  if (!database) {
    usage_error(error);
    return kUsageError;
  }
  // Clusters say so before they stop a job: the claim is given back.
  for (const int signal_number : {SIGINT, SIGTERM})
    signal(signal_number, [](int) { is_worker_stopped = true; });
  return Worker(o, *list, *database, *budget, *lease).run(part, parts);
}

}  // namespace

void add_worker(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<WorkerOptions>();
  CLI::App* c = app.add_subcommand("worker", "Tune the problems of a list that workers share");
  c->add_option("--list", o->list, "the work list: lines FILE [M=64,N=80] [2m]")->required();
  c->add_option("--db", o->database, "the worker's own database of trials, to be merged later");
  c->add_option("--part", o->part, "K/N: every N-th job from the K-th, where no folder is shared")
      ->capture_default_str();
  c->add_flag("--retry", o->retry, "also jobs that failed, or whose worker is gone");
  c->add_option("--lease", o->lease, "a worker that did not show itself for so long is gone")
      ->capture_default_str();
  c->add_flag("--status", o->status, "print what became of the jobs, and stop");
  c->add_option("--budget", o->budget, "time for a job that says none")->capture_default_str();
  add_search_options(*c, o->search);
  c->add_option("--target", o->target, kTargetHelp);
  c->add_flag("--emulate", o->emulate, "in the emulator instead of on a GPU");
  c->add_option("--sms", o->sms, "multiprocessors of the emulated device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_flag("--json", o->json, "one JSON object for each event of a job, and one at the end");
  c->footer(
      "One worker for each GPU, which CUDA_VISIBLE_DEVICES names (docs/tuning_cluster.md).\n"
      "Example: CUDA_VISIBLE_DEVICES=3 nautilus worker --list jobs.txt --db gpu3.db");
  c->callback([o, &exit_code] { exit_code = run_worker(*o); });
}

}  // namespace nautilus::tool

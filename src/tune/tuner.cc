// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "tune/child.h"
#include "tune/schedule_space.h"

namespace nautilus::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFinalRounds = 3;

class Tuner {
 public:
  Tuner(const Subject& subject, const TuneOptions& options, Database* database,
        const std::function<void(const Progress&)>& tell, const std::function<bool()>& is_stopped)
      : options_(options),
        database_(database),
        tell_(tell),
        is_stopped_(is_stopped),
        space_(subject) {}

  std::optional<TuneResult> run(const Problem& problem, std::string* error) {
    problem_ = problem;
    search_ = make_search(options_.search, space_, options_.seed);
    if (!search_) {
      *error = fmt::format("there is no search `{}`", options_.search);
      return std::nullopt;
    }
    own_choice_ = space_.own_choice();
    if (database_ && !recall(error)) return std::nullopt;
    while (ended_.empty()) {
      const std::vector<Proposal> batch = propose();
      if (batch.empty() && ended_.empty()) ended_ = "the search knows no more schedules";
      if (options_.jobs > 1) compile(batch);
      for (const Proposal& p : batch) {
        if (!ended_.empty()) break;
        if (!attempt(p, error)) return std::nullopt;
      }
    }
    if (!measure_finalists(error)) return std::nullopt;
    return result(error);
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  // What earlier searches found.
  bool recall(std::string* error) {
    const auto known = database_->find(Query::of(problem_), error);
    if (!known) return false;
    for (const Trial& t : *known) {
      search_->tell(t);
      trials_.push_back(t);
      note_best(t);
    }
    return true;
  }

  void note_best(const Trial& t) {
    if (t.verdict != Verdict::Timed) return;
    const double time = median(t.times);
    if (best_ == 0 || time < best_) best_ = time;
    if (t.schedule == own_choice_) first_ = time;
  }

  bool is_over() {
    if (!ended_.empty()) return true;
    if (is_stopped_())
      ended_ = "it was stopped";
    else if (seconds() >= options_.seconds)
      ended_ = "the time was over";
    else if (options_.trials > 0 && count_ >= options_.trials)
      ended_ = "all trials were made";
    return !ended_.empty();
  }

  std::vector<Proposal> propose() {
    std::vector<Proposal> batch;
    const auto jobs = static_cast<size_t>(std::max(options_.jobs, 1));
    while (batch.size() < jobs && !is_over()) {
      auto next = search_->next([&] { return is_over(); });
      if (!next) break;
      batch.push_back(std::move(*next));
      // Later proposals depend on what the first ones say.
      if (count_ == 0) break;
    }
    return batch;
  }

  // Fills the cache of compiled kernels, all of the batch at a time.
  void compile(const std::vector<Proposal>& batch) {
    std::vector<std::unique_ptr<Child>> children;
    std::string ignored;  // the trial itself says it
    for (const Proposal& p : batch) {
      auto& child = children.emplace_back(std::make_unique<Child>());
      if (child->start(options_.worker, &ignored)) child->send(request(p.schedule, true));
    }
    std::string line;
    for (auto& child : children) {
      if (child->is_running()) child->receive(options_.trial_seconds, line);
    }
  }

  static std::string request(const std::string& schedule, bool compiles_only) {
    nlohmann::json j = {{"schedule", schedule}};
    if (compiles_only) j["compile_only"] = true;
    return j.dump();
  }

  // One trial in the child process, which is started if it is not there.
  std::optional<Trial> measured(const std::string& schedule, std::string* error) {
    if (!child_.is_running() && !child_.start(options_.worker, error)) return std::nullopt;
    Trial trial;
    trial.problem = problem_;
    trial.schedule = schedule;
    trial.compiler = NAUTILUS_VERSION;
    trial.date = date_now();
    std::string line;
    const bool is_sent = child_.send(request(schedule, false));
    const auto answer =
        is_sent ? child_.receive(options_.trial_seconds, line) : Child::Answer::Ended;
    if (answer == Child::Answer::Line) {
      auto told = trial_of_json(line, error);
      if (!told) *error = fmt::format("what measures does not answer with trials: {}", *error);
      return told;
    }
    if (answer == Child::Answer::Late) {
      child_.stop();
      trial.verdict = Verdict::Hung;
      trial.reason = fmt::format("not done in {:.0f} s", options_.trial_seconds);
    } else {
      trial.verdict = Verdict::Failed;
      trial.reason = child_.end();
    }
    return trial;
  }

  bool keep(const Trial& trial, std::string* error) {
    trials_.push_back(trial);
    note_best(trial);
    return !database_ || database_->add(trial, error);
  }

  bool attempt(const Proposal& proposal, std::string* error) {
    auto trial = measured(proposal.schedule, error);
    if (!trial) return false;
    trial->predicted = proposal.predicted;
    ++count_;
    search_->tell(*trial);
    if (!keep(*trial, error)) return false;
    if (trial->verdict != Verdict::Timed)
      ++not_timed_[fmt::format("{}: {}", word(trial->verdict), trial->reason)];
    tell_({&*trial, proposal.name, seconds(), count_, best_, first_});
    is_over();
    return true;
  }

  // The fastest again, taking turns, so that a drift of the clock does not decide.
  bool measure_finalists(std::string* error) {
    std::map<std::string, double> times;
    for (const Trial& t : trials_) {
      if (t.verdict == Verdict::Timed) times[t.schedule] = median(t.times);
    }
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [schedule, time] : times) order.emplace_back(time, schedule);
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), options_.finalists));
    if (order.size() < 2 || problem_.machine == "emulator" || is_stopped_()) return true;
    for (int round = 0; round < kFinalRounds; ++round) {
      for (const auto& [time, schedule] : order) {
        const auto trial = measured(schedule, error);
        if (!trial || !keep(*trial, error)) return false;
      }
    }
    return true;
  }

  std::optional<TuneResult> result(std::string* error) {
    const auto winner = winner_of(trials_);
    if (!winner) {
      *error = not_timed_.empty() ? "no schedule was tried"
                                  : "no schedule could be timed; " + not_timed_.begin()->first;
      return std::nullopt;
    }
    for (const auto& [cause, n] : space_.refusals()) not_timed_["not legal: " + cause] += n;
    return TuneResult{*winner, first_, count_, seconds(), not_timed_, ended_};
  }

  const TuneOptions& options_;
  Database* database_;
  const std::function<void(const Progress&)>& tell_;
  const std::function<bool()>& is_stopped_;
  ScheduleSpace space_;
  Clock::time_point start_ = Clock::now();
  Problem problem_;
  std::string own_choice_;
  std::unique_ptr<Search> search_;
  Child child_;
  std::vector<Trial> trials_;
  std::map<std::string, int64_t> not_timed_;
  int64_t count_ = 0;
  double best_ = 0;
  double first_ = 0;
  std::string ended_;
};

}  // namespace

std::optional<TuneResult> tune(const Subject& subject, const TuneOptions& options,
                               Database* database, const std::function<void(const Progress&)>& tell,
                               const std::function<bool()>& is_stopped, std::string* error) {
  const auto problem = problem_of(subject, error);
  if (!problem) return std::nullopt;
  return Tuner(subject, options, database, tell, is_stopped).run(*problem, error);
}

}  // namespace nautilus::tune

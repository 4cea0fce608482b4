// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "tune/measure/builders.h"
#include "tune/measure/floor.h"
#include "tune/measure/trial_process.h"
#include "tune/search/near_problem.h"
#include "tune/search/schedule_space.h"

namespace nautilus::tune {
namespace {

constexpr int kFinalRounds = 3;
constexpr double kBuildSeconds = 120;  // of lowering or compiling one schedule
constexpr size_t kNearby = 2;          // problems that give their best schedules as early trials

// A schedule that is so near the floor is not worth looking further.
constexpr double kNearFloor = 1.02;
// A time below this share of the floor is one that the machine cannot have, or the work was not all
// done.
constexpr double kImpossible = 0.9;
// Better by less is not better.
constexpr double kBetter = 0.998;

class OneTuner final : public Tuner {
 public:
  OneTuner(Subject subject, TuneOptions options, Problem problem, const TuneHooks& hooks)
      : subject_(std::move(subject)),
        options_(std::move(options)),
        database_(hooks.database),
        tell_(hooks.tell),
        is_stopped_(hooks.is_stopped),
        start_(hooks.start),
        problem_(std::move(problem)),
        builders_(options_.worker, options_.jobs, kBuildSeconds) {}

  OneTuner(const OneTuner&) = delete;
  OneTuner& operator=(const OneTuner&) = delete;
  ~OneTuner() override { wait(); }

  // The search, with what earlier ones found, for this problem and for others.
  bool start(std::string* error) {
    process_.emplace(options_.worker, problem_, options_.trial_seconds);
    floor_ = floor_of(subject_);
    if (!begin_search(error)) return false;
    // Only the compiler's choice at first, so that its time is known at once.
    begin_making(1);
    return true;
  }

  bool step(size_t most, std::string* error) override {
    if (batch_.empty()) next_batch();
    for (size_t k = 0; k < most && !batch_.empty(); ++k) {
      if (is_over()) break;
      const Proposal next = std::move(batch_.front());
      batch_.erase(batch_.begin());
      if (!attempt(next, error)) return false;
    }
    is_over();
    return true;
  }

  const std::string& ended() const override { return ended_; }
  TunerState state() const override { return {best_, floor_, count_, count_ - better_at_}; }

  std::optional<TuneResult> finish(std::string* error) override {
    wait();
    if (!measure_finalists(error)) return std::nullopt;
    return result(error);
  }

 private:
  void wait() {
    if (maker_.joinable()) maker_.join();
  }

  // While a batch is measured the next one is made, from what was known before.
  void begin_making(size_t count) {
    maker_ = std::thread([this, count] { next_ = made(count); });
  }

  void next_batch() {
    wait();
    batch_ = std::move(next_);
    next_.clear();
    for (const Trial& t : measured_) search_->tell(t);
    measured_.clear();
    if (batch_.empty()) batch_ = made(batch_size());
    if (batch_.empty())
      ended_ = "the search knows no more schedules";
    else
      begin_making(batch_size());
  }

  double seconds() const {
    return std::chrono::duration<double>(TuneClock::now() - start_).count();
  }
  size_t batch_size() const { return static_cast<size_t>(std::max(options_.jobs, 1)); }

  bool begin_search(std::string* error) {
    std::vector<Trial> all;
    if (database_) {
      Query query;
      query.target = problem_.target;
      query.machine = problem_.machine;
      auto found = database_->find(query, error);
      if (!found) return false;
      all = std::move(*found);
    }
    space_ = std::make_unique<ScheduleSpace>(
        subject_, [this](const std::vector<std::string>& texts) { return lowered(texts); },
        winners_nearby(problem_, all, kNearby));
    search_ =
        make_search(options_.search, *space_, {options_.seed, samples_of_others(problem_, all)});
    if (!search_) {
      *error = fmt::format("there is no search `{}`", options_.search);
      return false;
    }
    std::string why;
    const auto own = space_->own_choice(&why);
    if (!own) {
      *error = fmt::format("the program has no schedule: {}", why);
      return false;
    }
    own_choice_ = *own;
    for (const Trial& t : all) {
      if (t.problem != problem_) continue;
      search_->tell(t);
      trials_.push_back(t);
      note_best(t);
    }
    return true;
  }

  void note_best(const Trial& t) {
    if (t.verdict != Verdict::Timed) return;
    const double time = median(t.times);
    if (best_ == 0 || time < kBetter * best_) better_at_ = count_;
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
    else if (floor_ > 0 && best_ > 0 && best_ <= kNearFloor * floor_)
      ended_ = "the best is as fast as the machine allows";
    else if (options_.patience > 0 && count_ - better_at_ >= options_.patience)
      ended_ = fmt::format("nothing better in {} trials", options_.patience);
    return !ended_.empty();
  }

  // Schedules to measure, with compiled kernels. Runs in parallel with measurements.
  std::vector<Proposal> made(size_t count) {
    const auto is_late = [&] { return is_stopped_() || seconds() >= options_.seconds; };
    std::vector<Proposal> out = search_->next(count, is_late);
    if (problem_.machine == "emulator") return out;  // which compiles when it runs
    std::vector<std::string> requests;
    for (const Proposal& p : out) requests.push_back(request(p.schedule, "compile"));
    builders_.ask(requests);  // what went wrong the trial itself says
    return out;
  }

  std::vector<Lowered> lowered(const std::vector<std::string>& texts) {
    std::vector<std::string> requests;
    for (const std::string& text : texts) requests.push_back(request(text, "lower"));
    std::vector<Lowered> out;
    for (const Builders::Answer& a : builders_.ask(requests)) {
      auto answer = lowered_of_json(a.line);
      Lowered none;
      none.refusal = a.error.empty() ? "what lowers gave no answer" : a.error;
      out.push_back(answer ? std::move(*answer) : none);
    }
    return out;
  }

  static std::string request(const std::string& schedule, const char* only) {
    return nlohmann::json{{"schedule", schedule}, {"only", only}}.dump();
  }

  bool keep(const Trial& trial, std::string* error) {
    trials_.push_back(trial);
    note_best(trial);
    if (!options_.record.empty() &&
        !base::append_file(options_.record, to_json(trial) + "\n", error))
      return false;
    return !database_ || database_->add(trial, error);
  }

  bool attempt(const Proposal& proposal, std::string* error) {
    auto trial = process_->measure(proposal.schedule, error);
    if (!trial) return false;
    trial->predicted = proposal.predicted;
    trial->features = proposal.features;
    trial->running = proposal.running;
    if (trial->verdict == Verdict::Timed && median(trial->times) < kImpossible * floor_)
      trial->reason = fmt::format("impossible: the machine takes {:.4g} ms at least", floor_);
    ++count_;
    measured_.push_back(*trial);
    if (!keep(*trial, error)) return false;
    if (trial->verdict != Verdict::Timed)
      ++not_timed_[fmt::format("{}: {}", word(trial->verdict), trial->reason)];
    tell_({&*trial, proposal.name, seconds(), count_, best_, first_, floor_});
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
    // The gain is measured as well.
    const auto is_own = [&](const auto& o) { return o.second == own_choice_; };
    if (first_ > 0 && std::none_of(order.begin(), order.end(), is_own))
      order.emplace_back(first_, own_choice_);
    if (order.size() < 2 || problem_.machine == "emulator" || is_stopped_()) return true;
    for (int round = 0; round < kFinalRounds; ++round) {
      for (const auto& [time, schedule] : order) {
        const auto trial = process_->measure(schedule, error);
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
    for (const auto& [cause, n] : space_->refusals()) not_timed_["not legal: " + cause] += n;
    std::vector<Trial> own;
    for (const Trial& t : trials_) {
      if (t.schedule == own_choice_) own.push_back(t);
    }
    if (const auto all = winner_of(own)) first_ = all->median;
    return TuneResult{*winner, first_, floor_, count_, seconds(), not_timed_, ended_};
  }

  const Subject subject_;
  const TuneOptions options_;
  Database* database_;
  const std::function<void(const Progress&)> tell_;
  const std::function<bool()> is_stopped_;
  const TuneClock::time_point start_;
  const Problem problem_;
  double floor_ = 0;
  std::string own_choice_;
  // Used by what makes schedules, never while the other thread does.
  Builders builders_;
  std::unique_ptr<ScheduleSpace> space_;
  std::unique_ptr<Search> search_;
  std::vector<Proposal> next_;
  std::thread maker_;
  // Used by what measures.
  std::vector<Proposal> batch_;  // what is measured now
  std::vector<Trial> measured_;  // that the search was not told of
  std::optional<TrialProcess> process_;
  std::vector<Trial> trials_;
  std::map<std::string, int64_t> not_timed_;
  int64_t count_ = 0;
  int64_t better_at_ = 0;
  double best_ = 0;
  double first_ = 0;
  std::string ended_;
};

}  // namespace

std::unique_ptr<Tuner> start_tuner(const Subject& subject, const TuneOptions& options,
                                   const TuneHooks& hooks, std::string* error) {
  auto problem = problem_of(subject, error);
  if (!problem) return nullptr;
  auto out = std::make_unique<OneTuner>(subject, options, std::move(*problem), hooks);
  if (!out->start(error)) return nullptr;
  return out;
}

std::optional<TuneResult> tune(const Subject& subject, const TuneOptions& options,
                               Database* database, const std::function<void(const Progress&)>& tell,
                               const std::function<bool()>& is_stopped, std::string* error) {
  const auto tuner = start_tuner(subject, options, {database, tell, is_stopped}, error);
  if (!tuner) return std::nullopt;
  while (tuner->ended().empty()) {
    if (!tuner->step(std::numeric_limits<size_t>::max(), error)) return std::nullopt;
  }
  return tuner->finish(error);
}

}  // namespace nautilus::tune

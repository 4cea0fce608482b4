// SPDX-License-Identifier: Apache-2.0
#include "tune/search/search.h"

#include <algorithm>

#include "tune/learn/line_features.h"

namespace nautilus::tune {
namespace {

constexpr int kAttempts = 50;         // rounds of proposals without a new one, then there are none
constexpr size_t kFirst = 8;          // seeds that an evolution begins with
constexpr size_t kParents = 6;        // the fastest, from which the search continues
constexpr double kCrossed = 0.2;      // share of mixtures
constexpr double kExploration = 0.1;  // share that begins, or is picked, anywhere
constexpr size_t kChoice = 4;         // mutations among which the learned model picks one
constexpr size_t kWaiting = 256;      // of those that are stored for later

constexpr size_t kAll = static_cast<size_t>(-1);

// Seeds in order, at most `count`.
class Seeds {
 public:
  explicit Seeds(Space& space) : space_(space) {}

  std::vector<Proposal> next(size_t count, size_t limit = kAll) {
    if (!list_) list_ = space_.seeds();
    const size_t end = std::min({at_ + count, limit, list_->size()});
    std::vector<Proposal> out;
    for (; at_ < end; ++at_) out.push_back((*list_)[at_]);
    return out;
  }

 private:
  Space& space_;
  std::optional<std::vector<Proposal>> list_;
  size_t at_ = 0;
};

class ModelSearch final : public Search {
 public:
  explicit ModelSearch(Space& space) : Search(space), seeds_(space) {}

 private:
  std::vector<Proposal> propose(size_t count) override { return seeds_.next(count); }
  Seeds seeds_;
};

class ExhaustiveSearch final : public Search {
 public:
  explicit ExhaustiveSearch(Space& space) : Search(space), seeds_(space) {}

 private:
  std::vector<Proposal> propose(size_t count) override {
    if (auto seeds = seeds_.next(count); !seeds.empty()) return seeds;
    if (left_.empty()) {
      const auto next = std::find_if(timed().begin(), timed().end(), [&](const Timed& t) {
        return !expanded_.contains(t.schedule);
      });
      if (next == timed().end()) return {};
      expanded_.insert(next->schedule);
      left_ = space().neighbours(next->schedule);
    }
    const size_t n = std::min(count, left_.size());
    std::vector<Proposal> out(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(n));
    left_.erase(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(n));
    return out;
  }

  Seeds seeds_;
  std::set<std::string> expanded_;
  std::vector<Proposal> left_;
};

// Seeds, then steps from schedules that were timed.
class WalkingSearch : public Search {
 public:
  WalkingSearch(Space& space, size_t first, uint64_t seed)
      : Search(space), random_(seed), seeds_(space), first_(first) {}

 protected:
  virtual const std::string& parent() = 0;
  virtual double share_of_mixtures() const { return 0; }

  std::vector<Proposal> propose(size_t count) override {
    if (auto seeds = seeds_.next(count, first_); !seeds.empty()) return seeds;
    std::vector<Proposal> out;
    if (timed().empty()) return seeds_.next(count);
    for (size_t k = 0; k < count; ++k) {
      if (timed().size() > 1 && random_.chance(share_of_mixtures())) {
        if (auto mixed = space().crossed(parent(), parent(), random_))
          out.push_back(std::move(*mixed));
        continue;
      }
      const std::vector<Proposal>& others = neighbours(parent());
      if (others.empty()) continue;
      out.push_back(others[below(others.size())]);
    }
    // Nowhere to step: what the cost model has is better than nothing.
    return out.empty() ? seeds_.next(count) : out;
  }

  size_t below(size_t count) {
    return static_cast<size_t>(random_.integer(0, static_cast<int64_t>(count) - 1));
  }

  base::Random random_;

 private:
  const std::vector<Proposal>& neighbours(const std::string& schedule) {
    const auto [it, is_new] = neighbours_.try_emplace(schedule);
    if (is_new) it->second = space().neighbours(schedule);
    return it->second;
  }

  Seeds seeds_;
  size_t first_;
  std::map<std::string, std::vector<Proposal>> neighbours_;
};

class RandomSearch final : public WalkingSearch {
 public:
  RandomSearch(Space& space, uint64_t seed) : WalkingSearch(space, 1, seed) {}

 private:
  const std::string& parent() override { return timed()[below(timed().size())].schedule; }
};

class EvolutionarySearch : public WalkingSearch {
 public:
  EvolutionarySearch(Space& space, uint64_t seed) : WalkingSearch(space, kFirst, seed) {}

 private:
  double share_of_mixtures() const override { return kCrossed; }
  // One of the fastest, the faster the likelier.
  const std::string& parent() override {
    const bool is_any = random_.chance(kExploration);
    const size_t count = is_any ? timed().size() : std::min(kParents, timed().size());
    return timed()[is_any ? below(count) : std::min(below(count), below(count))].schedule;
  }
};

class LearnedSearch final : public EvolutionarySearch {
 public:
  LearnedSearch(Space& space, SearchOptions options)
      : EvolutionarySearch(space, options.seed),
        samples_(std::move(options.others)),
        others_(samples_.size()),
        model_(make_rank_model()) {
    for (const Sample& s : samples_) own_ = std::max(own_, s.problem + 1);
  }

 private:
  // The seeds are tried in their order: they are what there is to learn from.
  size_t choice() const override { return timed().size() < kFirst ? 1 : kChoice; }

  std::vector<Proposal> pick(std::vector<Proposal>& waiting, size_t count) override {
    if (choice() == 1 || !learn()) return Search::pick(waiting, count);
    std::vector<std::pair<double, size_t>> order;
    for (size_t k = 0; k < waiting.size(); ++k)
      order.emplace_back(model_->score(sample_of(waiting[k])), k);
    std::sort(order.begin(), order.end());
    std::vector<Proposal> out;
    std::vector<Proposal> rest;
    for (size_t k = 0; k < order.size(); ++k) {
      // Now and then any of them, so that the model learns where it is wrong.
      if (random_.chance(kExploration)) std::swap(order[k], order[k + below(order.size() - k)]);
      (out.size() < count ? out : rest).push_back(std::move(waiting[order[k].second]));
    }
    if (rest.size() > kWaiting) rest.resize(kWaiting);
    waiting = std::move(rest);
    return out;
  }

  bool learn() {
    samples_.resize(others_);
    for (const Timed& t : timed()) {
      const Features& features = sample_of(t);
      if (!features.empty()) samples_.push_back({features, t.time, own_});
    }
    return model_->fit(samples_);
  }

  // Of a schedule that was timed or may be: made once, since every round asks for all of them.
  template <class Schedule>
  const Features& sample_of(const Schedule& s) {
    const auto [it, is_new] = known_samples_.try_emplace(s.schedule);
    if (is_new) it->second = sample_features(s.features, s.schedule, s.running);
    return it->second;
  }

  std::vector<Sample> samples_;
  size_t others_;
  size_t own_ = 0;  // number of this problem
  std::map<std::string, Features> known_samples_;
  std::unique_ptr<RankModel> model_;
};

}  // namespace

std::vector<Proposal> Search::unknown(size_t count) {
  std::vector<Proposal> out;
  for (int idle = 0; idle < kAttempts && out.size() < count; ++idle) {
    std::vector<Proposal> raw = propose(count - out.size());
    if (raw.empty()) break;
    for (Proposal& p : raw) {
      if (!lowered_.insert(p.schedule).second) continue;
      out.push_back(std::move(p));
      idle = 0;
    }
  }
  return out;
}

std::vector<Proposal> Search::next(size_t count, const std::function<bool()>& is_over) {
  const size_t wanted = count * choice();
  // Lowered all at a time; a second round only if there is not enough to go on.
  for (bool is_first = true; waiting_.size() < (is_first ? wanted : count) && !is_over();
       is_first = false) {
    const std::vector<Proposal> raw = unknown(wanted - waiting_.size());
    if (raw.empty()) break;
    for (Proposal& p : space_.lower(raw)) {
      const bool is_new = known_.insert(p.schedule).second;
      const bool differs = p.kernels.empty() || known_.insert(p.kernels).second;
      if (is_new && differs) waiting_.push_back(std::move(p));
    }
  }
  return pick(waiting_, count);
}

std::vector<Proposal> Search::pick(std::vector<Proposal>& waiting, size_t count) {
  const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(std::min(count, waiting.size()));
  std::vector<Proposal> out(std::make_move_iterator(waiting.begin()), std::make_move_iterator(end));
  waiting.erase(waiting.begin(), end);
  return out;
}

void Search::tell(const Trial& trial) {
  known_.insert(trial.schedule);
  if (trial.verdict != Verdict::Timed) return;
  const double time = median(trial.times);
  const auto place = std::upper_bound(timed_.begin(), timed_.end(), time,
                                      [](double t, const Timed& other) { return t < other.time; });
  timed_.insert(place, {trial.schedule, time, trial.features, trial.running});
}

const std::vector<std::string_view>& search_names() {
  static const std::vector<std::string_view> kNames = {"learned", "evolutionary", "exhaustive",
                                                       "model", "random"};
  return kNames;
}

std::unique_ptr<Search> make_search(std::string_view name, Space& space, SearchOptions options) {
  if (name == "exhaustive") return std::make_unique<ExhaustiveSearch>(space);
  if (name == "model") return std::make_unique<ModelSearch>(space);
  if (name == "random") return std::make_unique<RandomSearch>(space, options.seed);
  if (name == "evolutionary") return std::make_unique<EvolutionarySearch>(space, options.seed);
  if (name == "learned") return std::make_unique<LearnedSearch>(space, std::move(options));
  return nullptr;
}

}  // namespace nautilus::tune

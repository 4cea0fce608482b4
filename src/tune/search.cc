// SPDX-License-Identifier: Apache-2.0
#include "tune/search.h"

#include <algorithm>

namespace nautilus::tune {
namespace {

constexpr int kAttempts = 200;        // proposals that are all known, after which there are no more
constexpr size_t kFirst = 8;          // seeds that an evolution begins with
constexpr size_t kParents = 6;        // the fastest, from which it goes on
constexpr double kCrossed = 0.2;      // share of mixtures
constexpr double kExploration = 0.1;  // share that begins anywhere

// Legal seeds in order, at most so many.
class Seeds {
 public:
  explicit Seeds(Space& space) : space_(space) {}
  std::optional<Proposal> next(size_t limit) {
    while (legal_ < limit) {
      auto seed = space_.seed(at_);
      if (!seed) return std::nullopt;
      ++at_;
      if (seed->schedule.empty()) continue;
      ++legal_;
      return seed;
    }
    return std::nullopt;
  }

 private:
  Space& space_;
  size_t at_ = 0;
  size_t legal_ = 0;
};

constexpr size_t kAll = static_cast<size_t>(-1);

class ModelSearch final : public Search {
 public:
  explicit ModelSearch(Space& space) : seeds_(space) {}

 private:
  std::optional<Proposal> propose(const std::function<bool()>&) override {
    return seeds_.next(kAll);
  }
  Seeds seeds_;
};

class ExhaustiveSearch final : public Search {
 public:
  explicit ExhaustiveSearch(Space& space) : space_(space), seeds_(space) {}

 private:
  std::optional<Proposal> propose(const std::function<bool()>& is_over) override {
    if (auto seed = seeds_.next(kAll)) return seed;
    while (waiting_.empty() && !is_over()) {
      const auto next = std::find_if(timed().begin(), timed().end(), [&](const Timed& t) {
        return !expanded_.contains(t.schedule);
      });
      if (next == timed().end()) return std::nullopt;
      expanded_.insert(next->schedule);
      waiting_ = space_.neighbours(next->schedule);
      std::reverse(waiting_.begin(), waiting_.end());
    }
    if (waiting_.empty()) return std::nullopt;
    Proposal out = std::move(waiting_.back());
    waiting_.pop_back();
    return out;
  }

  Space& space_;
  Seeds seeds_;
  std::set<std::string> expanded_;
  std::vector<Proposal> waiting_;
};

class RandomSearch final : public Search {
 public:
  RandomSearch(Space& space, uint64_t seed) : space_(space), seeds_(space), random_(seed) {}

 private:
  std::optional<Proposal> propose(const std::function<bool()>& is_over) override {
    if (timed().empty()) return seeds_.next(kAll);
    for (int k = 0; k < kAttempts && !is_over(); ++k) {
      const auto from = random_.integer(0, static_cast<int64_t>(timed().size()) - 1);
      auto next = space_.mutated(timed()[static_cast<size_t>(from)].schedule, random_);
      if (next && !is_known(*next)) return next;
    }
    return seeds_.next(kAll);
  }

  Space& space_;
  Seeds seeds_;
  base::Random random_;
};

class EvolutionarySearch final : public Search {
 public:
  EvolutionarySearch(Space& space, uint64_t seed) : space_(space), seeds_(space), random_(seed) {}

 private:
  std::optional<Proposal> propose(const std::function<bool()>& is_over) override {
    if (auto seed = seeds_.next(kFirst)) return seed;
    for (int k = 0; k < kAttempts && !timed().empty() && !is_over(); ++k) {
      const bool is_crossed = timed().size() > 1 && random_.chance(kCrossed);
      auto next = is_crossed ? space_.crossed(parent(), parent(), random_)
                             : space_.mutated(parent(), random_);
      if (next && !is_known(*next)) return next;
    }
    return seeds_.next(kAll);
  }

  // One of the fastest, the faster the likelier.
  const std::string& parent() {
    const bool is_any = random_.chance(kExploration);
    const size_t count = is_any ? timed().size() : std::min(kParents, timed().size());
    const auto draw = [&] { return random_.integer(0, static_cast<int64_t>(count) - 1); };
    return timed()[static_cast<size_t>(is_any ? draw() : std::min(draw(), draw()))].schedule;
  }

  Space& space_;
  Seeds seeds_;
  base::Random random_;
};

}  // namespace

std::optional<Proposal> Search::next(const std::function<bool()>& is_over) {
  while (!is_over()) {
    auto proposal = propose(is_over);
    if (!proposal) return std::nullopt;
    const bool is_new = !is_known(*proposal);
    known_.insert({proposal->schedule, proposal->identity()});
    if (is_new) return proposal;
  }
  return std::nullopt;
}

void Search::tell(const Trial& trial) {
  known_.insert(trial.schedule);
  if (trial.verdict != Verdict::Timed) return;
  const double time = median(trial.times);
  const auto place = std::upper_bound(timed_.begin(), timed_.end(), time,
                                      [](double t, const Timed& other) { return t < other.time; });
  timed_.insert(place, {trial.schedule, time});
}

const std::vector<std::string_view>& search_names() {
  static const std::vector<std::string_view> kNames = {"evolutionary", "exhaustive", "model",
                                                       "random"};
  return kNames;
}

std::unique_ptr<Search> make_search(std::string_view name, Space& space, uint64_t seed) {
  if (name == "exhaustive") return std::make_unique<ExhaustiveSearch>(space);
  if (name == "model") return std::make_unique<ModelSearch>(space);
  if (name == "random") return std::make_unique<RandomSearch>(space, seed);
  if (name == "evolutionary") return std::make_unique<EvolutionarySearch>(space, seed);
  return nullptr;
}

}  // namespace nautilus::tune

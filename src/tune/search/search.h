// SPDX-License-Identifier: Apache-2.0
// Strategies of a search: which schedules are tried next, given earlier trials. They see schedules
// as texts and ask a Space for others, so that recorded trials can replace a machine.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/random.h"
#include "tune/learn/rank_model.h"
#include "tune/records/trial.h"

namespace nautilus::tune {

struct Proposal {
  std::string schedule;
  std::string name;      // what it tries, for people
  double predicted = 0;  // cycles by the cost model; 0: unknown
  // A hash of the kernels that run at the sizes of the problem: schedules with equal kernels are
  // one candidate. Empty: the schedule's text is compared instead.
  std::string kernels = {};
  Features features = {};  // of the kernels
  Running running = {};

  const std::string& identity() const { return kernels.empty() ? schedule : kernels; }
};

// The schedules of a problem. All functions but `lower` are cheap and do not check legality.
class Space {
 public:
  virtual ~Space() = default;
  // To begin with: the compiler's own choice first, then the best by the cost model.
  virtual std::vector<Proposal> seeds() = 0;
  // One line away from a schedule.
  virtual std::vector<Proposal> neighbours(const std::string& schedule) = 0;
  // Lines of both; nothing if their kernels differ.
  virtual std::optional<Proposal> crossed(const std::string& a, const std::string& b,
                                          base::Random& random) = 0;
  // The legal ones, with all their lines, their running kernels and their features.
  virtual std::vector<Proposal> lower(const std::vector<Proposal>& raw) = 0;
};

class Search {
 public:
  explicit Search(Space& space) : space_(space) {}
  virtual ~Search() = default;

  // Legal schedules that were neither proposed nor told before, at most `count`; none if the search
  // has no more, or if `is_over` becomes true meanwhile.
  std::vector<Proposal> next(size_t count, const std::function<bool()>& is_over);
  // What became of a schedule, of this search or of an earlier one.
  void tell(const Trial& trial);

 protected:
  struct Timed {
    std::string schedule;
    double time;
    Features features;  // of the kernels
    Running running;
  };
  // About `count` schedules to lower; some may be known already. Empty: no more.
  virtual std::vector<Proposal> propose(size_t count) = 0;
  // How many legal schedules there are to choose from for each that is tried.
  virtual size_t choice() const { return 1; }
  // Moves the schedules to try next out of `waiting`, at most `count`.
  virtual std::vector<Proposal> pick(std::vector<Proposal>& waiting, size_t count);

  Space& space() { return space_; }
  // Schedules that were timed, the fastest first.
  const std::vector<Timed>& timed() const { return timed_; }

 private:
  // At most `count` schedules that the space was not asked about.
  std::vector<Proposal> unknown(size_t count);

  Space& space_;
  std::set<std::string> lowered_;  // texts that the space was asked about
  std::set<std::string> known_;    // complete texts, and identities, of all legal ones
  std::vector<Proposal> waiting_;  // legal, not proposed yet
  std::vector<Timed> timed_;
};

struct SearchOptions {
  uint64_t seed = 1;
  std::vector<Sample> others = {};  // trials of other problems, for the learned model
};

// exhaustive: the seeds, then everything one line away from them, and so on.
// model: the seeds alone, in the order of the cost model.
// random: the seeds' neighbours, from any schedule that was timed.
// evolutionary: the best by the cost model, then mutations and mixtures of the fastest.
// learned: the same, but of several mutations a learned model picks those that are tried.
const std::vector<std::string_view>& search_names();
std::unique_ptr<Search> make_search(std::string_view name, Space& space, SearchOptions options);

}  // namespace nautilus::tune

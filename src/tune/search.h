// SPDX-License-Identifier: Apache-2.0
// Strategies of a search: which schedule is tried next, from what earlier trials said. They see
// schedules as texts and ask a Space for others, so that recorded trials can stand in for a
// machine.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "base/random.h"
#include "tune/trial.h"

namespace nautilus::tune {

struct Proposal {
  std::string schedule;
  std::string name;      // what it tries, for people
  double predicted = 0;  // cycles by the model; 0: unknown
  // What runs at the sizes of the problem: schedules with equal kernels are one candidate. Empty:
  // the schedule's text tells.
  std::string kernels = {};

  const std::string& identity() const { return kernels.empty() ? schedule : kernels; }
};

// Legal schedules of a problem. Each has all its lines, so that equal ones are equal texts.
class Space {
 public:
  virtual ~Space() = default;
  // The n-th schedule to begin with: the compiler's own choice first, then the best by the model.
  // One that is not legal has no text; nothing: there are no more.
  virtual std::optional<Proposal> seed(size_t n) = 0;
  // One line away from a schedule: a random one of those, or nothing if it is not legal.
  virtual std::optional<Proposal> mutated(const std::string& schedule, base::Random& random) = 0;
  // All of them; may take long.
  virtual std::vector<Proposal> neighbours(const std::string& schedule) = 0;
  // Lines of both; nothing if the result is not legal.
  virtual std::optional<Proposal> crossed(const std::string& a, const std::string& b,
                                          base::Random& random) = 0;
};

class Search {
 public:
  virtual ~Search() = default;
  // A schedule that was neither proposed nor told before; nothing if the search knows no more, or
  // if `is_over` says so meanwhile: finding a legal one takes time.
  std::optional<Proposal> next(const std::function<bool()>& is_over);
  // What became of a schedule, of this search or of an earlier one.
  void tell(const Trial& trial);

 protected:
  struct Timed {
    std::string schedule;
    double time;
  };
  // Something to try; it may be known already. Nothing: no more.
  virtual std::optional<Proposal> propose(const std::function<bool()>& is_over) = 0;

  // Schedules that were timed, the fastest first.
  const std::vector<Timed>& timed() const { return timed_; }
  bool is_known(const Proposal& p) const {
    return known_.contains(p.identity()) || known_.contains(p.schedule);
  }

 private:
  std::set<std::string> known_;  // texts of schedules, and identities
  std::vector<Timed> timed_;
};

// exhaustive: the seeds, then everything one line away from them, and so on.
// model: the seeds alone, in the model's order.
// random: the seeds' neighbours, from any schedule that was timed.
// evolutionary: the best by the model, then mutations and mixtures of the fastest.
const std::vector<std::string_view>& search_names();
std::unique_ptr<Search> make_search(std::string_view name, Space& space, uint64_t seed);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// Recorded trials of a problem as a Space: compares what searches would have found after a number
// of trials, without a machine.
#pragma once

#include "tune/search/search.h"

namespace nautilus::tune {

class RecordedSpace final : public Space {
 public:
  // Of one problem; those that were not timed are not legal here.
  explicit RecordedSpace(const std::vector<Trial>& trials);

  // The schedule that was timed first, which is the compiler's choice, then the others that the
  // cost model proposed, in its order.
  std::vector<Proposal> seeds() override;
  // The nearest recorded ones, by lines that differ, and those that this one is among the nearest
  // of: one that is far from all others is reached as well.
  std::vector<Proposal> neighbours(const std::string& schedule) override;
  // The recorded one that is nearest to both, if it is neither.
  std::optional<Proposal> crossed(const std::string& a, const std::string& b,
                                  base::Random& random) override;
  std::vector<Proposal> lower(const std::vector<Proposal>& raw) override;

  size_t size() const { return entries_.size(); }
  double best() const;
  // The trial of a schedule.
  Trial trial(const std::string& schedule) const;

 private:
  struct Entry {
    Proposal proposal;
    Trial trial;  // all times of the schedule
    std::set<std::string> lines;
  };
  // Recorded schedules by the sum of their distances from the ones that are given.
  std::vector<const Entry*> nearest(const std::vector<std::string>& to) const;
  const Entry* entry(const std::string& schedule) const;
  const std::vector<std::string>& nearest_few(const std::string& schedule);

  std::vector<Entry> entries_;  // in the order in which they were timed
  std::map<std::string, std::vector<std::string>> nearest_few_;
};

// Mean over seeds of how much slower the best of the first trials is than the best of all: 0.02 is
// 2 %.
struct Regret {
  std::vector<double> after;  // trials 1, 2, ..., as many as were asked for
};
Regret regret_of(std::string_view search, RecordedSpace& space, const std::vector<Sample>& others,
                 size_t trials, uint64_t seeds);

}  // namespace nautilus::tune

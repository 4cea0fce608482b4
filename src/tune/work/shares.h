// SPDX-License-Identifier: Apache-2.0
// Chooses which of several searches with a shared budget goes on: the one that can still save most
// time.
//
//   worth = weight * best time * what tuning may still gain
//   gain  = (1 - floor / best) * 16 / (16 + trials since one was better)
//
// Weight times best time is the shape's share of the time of all calls. Below the floor nothing can
// be gained, and a search that has long found nothing better is expected to find little more: after
// 16 idle trials half as much as at first. Every search gets trials in proportion to its present
// worth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nautilus::tune {

struct Shared {
  double weight = 1;
  double best = 0;     // time of the best schedule so far; 0: nothing was timed
  double floor = 0;    // 0: unknown
  int64_t trials = 0;  // of this search
  int64_t idle = 0;    // since one was better
  bool is_over = false;
};

// Relative to each other. Searches without a timed schedule count with the mean time of the others;
// finished searches are worth 0.
std::vector<double> worths(const std::vector<Shared>& searches);

class Shares {
 public:
  // The next search; the number of searches if all are over. Searches without a time come first, in
  // their order. Searches are the same ones, in the same order, in every call.
  size_t next(const std::vector<Shared>& searches);
  // Records that the search made this many trials.
  void took(size_t search, int64_t trials);

 private:
  std::vector<double> shares_;  // of the trials that come next
  std::vector<double> owed_;    // trials that a search is still owed
};

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// Which of several searches goes on, when they share a budget: the time goes where most time can
// still be saved.
//
//   worth = weight * best time * what tuning may still gain
//   gain  = (1 - floor / best) * 16 / (16 + trials since one was better)
//
// Weight times best time is what the shape takes of all calls. Below the floor nothing can be
// gained, and a search that has long found nothing better is expected to find little more: after 16
// idle trials half as much as at first. Every search gets trials in proportion to what it is worth
// at the moment.
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

// Relative to each other. Searches of which nothing was timed count with the mean time of the
// others; those that are over have none.
std::vector<double> worths(const std::vector<Shared>& searches);

class Shares {
 public:
  // The search whose turn it is; the number of searches if all are over. At first all that have no
  // time yet, in their order. Searches are the same ones, in the same order, in every call.
  size_t next(const std::vector<Shared>& searches);
  // It made so many trials.
  void took(size_t search, int64_t trials);

 private:
  std::vector<double> shares_;  // of the trials that come next
  std::vector<double> owed_;    // trials that a search should have had and has not
};

}  // namespace nautilus::tune

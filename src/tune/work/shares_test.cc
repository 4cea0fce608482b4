// SPDX-License-Identifier: Apache-2.0
#include "tune/work/shares.h"

#include <gtest/gtest.h>

namespace nautilus::tune {
namespace {

// How many trials each search gets, with a fixed number a turn; nothing else changes.
std::vector<int> turns(const std::vector<Shared>& searches, int count, int at_once = 1) {
  Shares shares;
  std::vector<int> out(searches.size(), 0);
  for (int k = 0; k < count; k += at_once) {
    const size_t next = shares.next(searches);
    if (next >= out.size()) break;
    out[next] += at_once;
    shares.took(next, at_once);
  }
  return out;
}

Shared timed(double weight, double best) { return {.weight = weight, .best = best, .trials = 1}; }

TEST(Shares, FollowWeightTimesTime) {
  EXPECT_EQ(turns({timed(1, 2), timed(1, 2)}, 40), (std::vector<int>{20, 20}));
  EXPECT_EQ(turns({timed(3, 2), timed(1, 2)}, 40), (std::vector<int>{30, 10}));
  EXPECT_EQ(turns({timed(1, 6), timed(1, 2)}, 40), (std::vector<int>{30, 10}));
  EXPECT_EQ(turns({timed(1, 6), timed(3, 2)}, 40), (std::vector<int>{20, 20}));
  EXPECT_EQ(turns({timed(3, 2), timed(1, 2)}, 40, 5), (std::vector<int>{30, 10}));
}

TEST(Shares, GoWhereMoreCanBeGained) {
  Shared near = timed(1, 2);
  near.floor = 1.5;  // a quarter can be gained, of the other one half
  Shared far = timed(1, 2);
  far.floor = 1;
  EXPECT_EQ(turns({near, far}, 30), (std::vector<int>{10, 20}));
  Shared idle = timed(1, 2);
  idle.idle = 16;
  EXPECT_EQ(turns({idle, timed(1, 2)}, 30), (std::vector<int>{10, 20}));
}

TEST(Shares, BeginWithWhatHasNoTime) {
  Shares shares;
  std::vector<Shared> searches = {timed(100, 100), {}, {}};
  EXPECT_EQ(shares.next(searches), 1u);
  searches[1] = timed(1, 1);
  EXPECT_EQ(shares.next(searches), 2u);
  searches[2].trials = 1;  // it failed
  EXPECT_EQ(shares.next(searches), 0u);
  // It still gets turns, as one of the mean time of the others.
  EXPECT_EQ(worths(searches)[2], 50.5);
}

TEST(Shares, EndWithTheLastSearch) {
  Shared over = timed(100, 100);
  over.is_over = true;
  EXPECT_EQ(turns({over, timed(1, 1)}, 10), (std::vector<int>{0, 10}));
  EXPECT_EQ(Shares().next({over, over}), 2u);
  // At the floor nothing is to be gained: then all get the same.
  Shared done = timed(1, 2);
  done.floor = 2;
  EXPECT_EQ(turns({done, done}, 10), (std::vector<int>{5, 5}));
}

}  // namespace
}  // namespace nautilus::tune

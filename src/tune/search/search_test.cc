// SPDX-License-Identifier: Apache-2.0
// Searches on a made-up space: schedules are pairs of numbers, the time is their distance from one
// of them.
#include "tune/search/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace nautilus::tune {
namespace {

class Grid final : public Space {
 public:
  std::vector<Proposal> seeds() override {
    std::vector<Proposal> out;
    for (int at = 0; at < 4; ++at) out.push_back({text(at, at), "a seed"});
    return out;
  }
  // All but one place; two numbers are all there is to learn from.
  std::vector<Proposal> lower(const std::vector<Proposal>& raw) override {
    std::vector<Proposal> out;
    for (Proposal p : raw) {
      if (p.schedule == "1 1") continue;
      const auto [x, y] = place(p.schedule);
      p.features.assign(feature_names().size(), 0);
      p.features[0] = std::abs(x - 7);
      p.features[1] = std::abs(y - 5);
      out.push_back(std::move(p));
    }
    return out;
  }
  std::vector<Proposal> neighbours(const std::string& schedule) override {
    const auto [x, y] = place(schedule);
    std::vector<Proposal> out;
    for (const auto& [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
      if (x + dx < 0 || y + dy < 0 || x + dx > 9 || y + dy > 9) continue;
      out.push_back({text(x + dx, y + dy), "a step"});
    }
    return out;
  }
  std::optional<Proposal> crossed(const std::string& a, const std::string& b,
                                  base::Random&) override {
    return Proposal{text(place(a).first, place(b).second), "both"};
  }

  static std::string text(int x, int y) { return fmt::format("{} {}", x, y); }
  static std::pair<int, int> place(const std::string& s) {
    char* end = nullptr;
    const auto x = static_cast<int>(std::strtol(s.c_str(), &end, 10));
    return {x, static_cast<int>(std::strtol(end, nullptr, 10))};
  }
};

double time_of(const std::string& schedule) {
  const auto [x, y] = Grid::place(schedule);
  return 1.0 + std::abs(x - 7) + std::abs(y - 5);
}

// The trials of a search in order, until it knows no more.
std::vector<std::string> trace(const std::string& name, uint64_t seed, size_t most) {
  Grid grid;
  const auto search = make_search(name, grid, {seed});
  std::vector<std::string> out;
  while (out.size() < most) {
    const auto next = search->next(1, [] { return false; });
    if (next.empty()) break;
    out.push_back(next[0].schedule);
    Trial t;
    t.schedule = next[0].schedule;
    t.verdict = Verdict::Timed;
    t.times = {time_of(t.schedule)};
    t.features = next[0].features;
    search->tell(t);
  }
  return out;
}

TEST(Search, NamesAreSearches) {
  Grid grid;
  for (const std::string_view name : search_names())
    EXPECT_TRUE(make_search(name, grid, {})) << name;
  EXPECT_FALSE(make_search("magic", grid, {}));
}

TEST(Search, NothingIsProposedTwice) {
  for (const std::string_view name : search_names()) {
    const auto tried = trace(std::string(name), 1, 100);
    EXPECT_EQ(std::set<std::string>(tried.begin(), tried.end()).size(), tried.size()) << name;
    EXPECT_EQ(tried[0], "0 0") << name;
  }
}

TEST(Search, TheModelKnowsItsSeedsAlone) {
  EXPECT_EQ(trace("model", 1, 100), (std::vector<std::string>{"0 0", "2 2", "3 3"}));
}

TEST(Search, ExhaustiveFindsEverythingLegal) {
  EXPECT_EQ(trace("exhaustive", 1, 1000).size(), 99u);
}

TEST(Search, WhatIsLearnedFindsTheBestSooner) {
  const auto trials_to_best = [](const std::string& name) {
    size_t sum = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const auto tried = trace(name, seed, 100);
      sum += static_cast<size_t>(std::find(tried.begin(), tried.end(), "7 5") - tried.begin());
    }
    return sum;
  };
  EXPECT_LT(trials_to_best("evolutionary"), trials_to_best("random"));
  EXPECT_LT(trials_to_best("learned"), trials_to_best("evolutionary"));
}

TEST(Search, TheSameSeedIsTheSameSearch) {
  for (const std::string_view name : search_names())
    EXPECT_EQ(trace(std::string(name), 5, 40), trace(std::string(name), 5, 40)) << name;
}

TEST(Search, EqualKernelsAreOneCandidate) {
  class Same final : public Space {
   public:
    std::vector<Proposal> seeds() override {
      std::vector<Proposal> out;
      for (int n = 0; n < 6; ++n)
        out.push_back({fmt::format("s{}", n), "", 0, n % 2 ? "odd" : "even"});
      return out;
    }
    std::vector<Proposal> lower(const std::vector<Proposal>& raw) override { return raw; }
    std::vector<Proposal> neighbours(const std::string&) override { return {}; }
    std::optional<Proposal> crossed(const std::string&, const std::string&,
                                    base::Random&) override {
      return {};
    }
  } space;
  const auto search = make_search("model", space, {});
  const auto next = search->next(6, [] { return false; });
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[0].schedule, "s0");
  EXPECT_EQ(next[1].schedule, "s1");
  EXPECT_TRUE(search->next(1, [] { return false; }).empty());
}

TEST(Search, ATrialThatIsToldIsNotProposed) {
  Grid grid;
  const auto search = make_search("model", grid, {});
  Trial t;
  t.schedule = "2 2";
  t.verdict = Verdict::Wrong;
  search->tell(t);
  const auto next = search->next(10, [] { return false; });
  ASSERT_EQ(next.size(), 2u);
  EXPECT_EQ(next[1].schedule, "3 3");
}

}  // namespace
}  // namespace nautilus::tune

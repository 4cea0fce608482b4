// SPDX-License-Identifier: Apache-2.0
// Searches on a made-up space: schedules are pairs of numbers, the time is their distance from one
// of them.
#include "tune/search.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace nautilus::tune {
namespace {

class Grid final : public Space {
 public:
  std::optional<Proposal> seed(size_t n) override {
    if (n > 3) return std::nullopt;
    if (n == 1) return Proposal{};  // not legal
    const int at = static_cast<int>(n);
    return Proposal{text(at, at), "a seed"};
  }
  std::optional<Proposal> mutated(const std::string& schedule, base::Random& random) override {
    const auto all = neighbours(schedule);
    return all[static_cast<size_t>(random.integer(0, static_cast<int64_t>(all.size()) - 1))];
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
  const auto search = make_search(name, grid, seed);
  std::vector<std::string> out;
  while (out.size() < most) {
    const auto next = search->next([] { return false; });
    if (!next) break;
    out.push_back(next->schedule);
    Trial t;
    t.schedule = next->schedule;
    t.verdict = Verdict::Timed;
    t.times = {time_of(next->schedule)};
    search->tell(t);
  }
  return out;
}

TEST(Search, NamesAreSearches) {
  Grid grid;
  for (const std::string_view name : search_names())
    EXPECT_TRUE(make_search(name, grid, 1)) << name;
  EXPECT_FALSE(make_search("magic", grid, 1));
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

TEST(Search, ExhaustiveFindsEverything) { EXPECT_EQ(trace("exhaustive", 1, 1000).size(), 100u); }

TEST(Search, EvolutionFindsTheBestSooner) {
  const auto trials_to_best = [](const std::string& name) {
    size_t sum = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const auto tried = trace(name, seed, 100);
      sum += static_cast<size_t>(std::find(tried.begin(), tried.end(), "7 5") - tried.begin());
    }
    return sum;
  };
  EXPECT_LT(trials_to_best("evolutionary"), trials_to_best("random"));
}

TEST(Search, TheSameSeedIsTheSameSearch) {
  for (const std::string_view name : search_names())
    EXPECT_EQ(trace(std::string(name), 5, 40), trace(std::string(name), 5, 40)) << name;
}

TEST(Search, EqualKernelsAreOneCandidate) {
  class Same final : public Space {
   public:
    std::optional<Proposal> seed(size_t n) override {
      if (n > 5) return std::nullopt;
      return Proposal{fmt::format("s{}", n), "", 0, n % 2 ? "odd" : "even"};
    }
    std::optional<Proposal> mutated(const std::string&, base::Random&) override { return {}; }
    std::vector<Proposal> neighbours(const std::string&) override { return {}; }
    std::optional<Proposal> crossed(const std::string&, const std::string&,
                                    base::Random&) override {
      return {};
    }
  } space;
  const auto search = make_search("model", space, 1);
  const auto next = [&] {
    const auto p = search->next([] { return false; });
    return p ? p->schedule : "none";
  };
  EXPECT_EQ(next(), "s0");
  EXPECT_EQ(next(), "s1");
  EXPECT_EQ(next(), "none");
}

}  // namespace
}  // namespace nautilus::tune

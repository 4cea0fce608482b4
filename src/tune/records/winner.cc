// SPDX-License-Identifier: Apache-2.0
#include "tune/records/winner.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace nautilus::tune {
namespace {

struct Candidate {
  std::vector<double> times;
  bool is_out = false;
};

double at_share(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(place + 0.5)];
}

}  // namespace

size_t lines_taken(const std::string& schedule) {
  size_t count = 0;
  for (const std::string_view word : {" tuned", " user"}) {
    for (size_t at = schedule.find(word); at != std::string::npos;
         at = schedule.find(word, at + word.size()))
      ++count;
  }
  return count;
}

std::vector<Winner> standings(const std::vector<Trial>& trials, std::string_view version) {
  std::set<std::string_view> measured_now;
  for (const Trial& t : trials) {
    if (t.verdict != Verdict::Refused && t.compiler == version) measured_now.insert(t.schedule);
  }
  std::map<std::string, Candidate> candidates;
  for (const Trial& t : trials) {
    if (t.verdict == Verdict::Refused) continue;
    if (t.compiler != version && measured_now.contains(t.schedule)) continue;
    Candidate& c = candidates[t.schedule];
    c.is_out |= t.verdict != Verdict::Timed;
    c.times.insert(c.times.end(), t.times.begin(), t.times.end());
  }
  std::vector<Winner> timed;
  for (auto& [schedule, c] : candidates) {
    if (c.is_out || c.times.empty()) continue;
    std::sort(c.times.begin(), c.times.end());
    timed.push_back({schedule, at_share(c.times, 0.5), at_share(c.times, 0.25),
                     at_share(c.times, 0.75), c.times.size(), 0});
  }
  for (Winner& w : timed) w.candidates = timed.size();
  std::stable_sort(timed.begin(), timed.end(),
                   [](const Winner& a, const Winner& b) { return a.median < b.median; });
  return timed;
}

std::optional<Winner> winner_of(const std::vector<Trial>& trials, std::string_view version) {
  const std::vector<Winner> timed = standings(trials, version);
  const Winner* best = nullptr;
  for (const Winner& w : timed) {
    if (w.low > timed[0].median) continue;
    const auto rank = [](const Winner& x) {
      return std::tuple(lines_taken(x.schedule), x.schedule);
    };
    if (!best || rank(w) < rank(*best)) best = &w;
  }
  if (!best) return std::nullopt;
  return *best;
}

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
#include "tune/search/near_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tune/learn/line_features.h"
#include "tune/records/winner.h"

namespace nautilus::tune {
namespace {

double log_distance(const std::map<std::string, int64_t>& a,
                    const std::map<std::string, int64_t>& b) {
  double sum = 0;
  for (const auto& [name, size] : a) {
    const auto other = b.find(name);
    const double ratio =
        other == b.end() ? 1
                         : static_cast<double>(size + 1) / static_cast<double>(other->second + 1);
    sum += std::abs(std::log2(ratio));
  }
  return sum;
}

}  // namespace

std::vector<Proposal> winners_nearby(const Problem& problem, const std::vector<Trial>& trials,
                                     size_t count) {
  std::map<std::string, std::vector<Trial>> by_sizes;
  for (const Trial& t : trials) {
    Problem at = problem;
    at.sizes = t.problem.sizes;
    if (t.problem == at && at.sizes != problem.sizes)
      by_sizes[sizes_text(t.problem.sizes)].push_back(t);
  }
  std::vector<std::pair<double, Proposal>> found;
  for (const auto& [sizes, list] : by_sizes) {
    if (const auto winner = winner_of(list))
      found.emplace_back(log_distance(problem.sizes, list[0].problem.sizes),
                         Proposal{winner->schedule, fmt::format("the best for {}", sizes)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Proposal> out;
  for (auto& [far, proposal] : found) {
    if (out.size() < count) out.push_back(std::move(proposal));
  }
  return out;
}

std::vector<Sample> samples_of_others(const Problem& problem, const std::vector<Trial>& trials) {
  std::map<std::string, size_t> numbers;
  std::vector<Sample> out;
  for (const Trial& t : trials) {
    const bool counts = t.verdict == Verdict::Timed && t.problem != problem &&
                        t.problem.target == problem.target && t.problem.machine == problem.machine;
    if (!counts) continue;
    Features features = sample_features(t.features, t.schedule, t.running);
    if (features.empty()) continue;
    const std::string name = t.problem.equations + " " + sizes_text(t.problem.sizes);
    const size_t number = numbers.try_emplace(name, numbers.size()).first->second;
    out.push_back({std::move(features), median(t.times), number});
  }
  return out;
}

}  // namespace nautilus::tune

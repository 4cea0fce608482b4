// SPDX-License-Identifier: Apache-2.0
#include "tune/search/first_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace nautilus::tune {
namespace {

struct Recorded {
  Features features;
  double time = 0;  // median of all its trials
  double predicted = 0;
};

struct RecordedProblem {
  Problem problem;
  std::string program;
  std::vector<Recorded> schedules;
};

std::vector<RecordedProblem> recorded_problems(const std::vector<Trial>& trials, size_t least) {
  struct Collected {
    std::vector<double> times;
    Recorded recorded;
  };
  std::vector<RecordedProblem> out;
  std::vector<std::map<std::string, Collected>> by_schedule;
  for (const Trial& t : trials) {
    if (t.verdict != Verdict::Timed || t.problem.machine == "emulator") continue;
    const auto same = [&](const RecordedProblem& p) { return p.problem == t.problem; };
    const auto found = std::find_if(out.begin(), out.end(), same);
    const auto at = static_cast<size_t>(found - out.begin());
    if (found == out.end()) {
      out.push_back({t.problem, t.program, {}});
      by_schedule.emplace_back();
    }
    Collected& c = by_schedule[at][t.schedule];
    c.times.insert(c.times.end(), t.times.begin(), t.times.end());
    // Finalists are measured again without these.
    if (t.predicted > 0) c.recorded.predicted = t.predicted;
    if (t.features.size() == feature_names().size()) c.recorded.features = t.features;
  }
  for (size_t k = 0; k < out.size(); ++k) {
    for (auto& [text, c] : by_schedule[k]) {
      if (c.recorded.predicted <= 0 || c.recorded.features.empty() || c.times.empty()) continue;
      c.recorded.time = median(c.times);
      out[k].schedules.push_back(std::move(c.recorded));
    }
  }
  std::erase_if(out, [&](const RecordedProblem& p) { return p.schedules.size() < least; });
  return out;
}

// How much longer the schedule with the least score takes than the best one.
double loss(const RecordedProblem& p, const std::function<double(const Recorded&)>& score) {
  const auto by_score = [&](const Recorded& a, const Recorded& b) { return score(a) < score(b); };
  const auto by_time = [](const Recorded& a, const Recorded& b) { return a.time < b.time; };
  const auto& s = p.schedules;
  return std::min_element(s.begin(), s.end(), by_score)->time /
             std::min_element(s.begin(), s.end(), by_time)->time -
         1;
}

// With a line through the model's errors in the problems that `counts` selects.
double corrected_loss(const std::vector<RecordedProblem>& all, const RecordedProblem& p,
                      const std::function<bool(const RecordedProblem&)>& counts) {
  std::vector<Sample> missed;
  for (size_t k = 0; k < all.size(); ++k) {
    if (!counts(all[k])) continue;
    for (const Recorded& r : all[k].schedules)
      missed.push_back({r.features, r.time / r.predicted, k});
  }
  const auto model = make_linear_model();
  const bool is_fitted = model->fit(missed);
  return loss(p, [&](const Recorded& r) {
    return std::log2(r.predicted) + (is_fitted ? model->score(r.features) : 0);
  });
}

}  // namespace

std::vector<FirstChoice> first_choices(const std::vector<Trial>& trials, size_t least) {
  const std::vector<RecordedProblem> all = recorded_problems(trials, std::max<size_t>(least, 1));
  std::vector<FirstChoice> out;
  for (const RecordedProblem& p : all) {
    const auto is_comparable = [&](const RecordedProblem& q) {
      return &q != &p && q.problem.target == p.problem.target &&
             q.problem.machine == p.problem.machine;
    };
    const auto is_other = [&](const RecordedProblem& q) {
      return is_comparable(q) && q.problem.equations != p.problem.equations &&
             q.program != p.program;
    };
    out.push_back({p.program, p.problem.sizes, p.schedules.size(),
                   loss(p, [](const Recorded& r) { return r.predicted; }),
                   corrected_loss(all, p, is_comparable), corrected_loss(all, p, is_other)});
  }
  return out;
}

}  // namespace nautilus::tune

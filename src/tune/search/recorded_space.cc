// SPDX-License-Identifier: Apache-2.0
#include "tune/search/recorded_space.h"

#include <algorithm>

namespace nautilus::tune {
namespace {

constexpr size_t kNeighbours = 24;
constexpr size_t kBatch = 8;

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> out;
  std::string kernel;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(";\n", at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    line.erase(0, line.find_first_not_of(' '));
    if (line.starts_with("kernel ")) kernel = line;
    out.insert(kernel + ": " + line);
  }
  return out;
}

size_t differing(const std::set<std::string>& a, const std::set<std::string>& b) {
  const auto missing = [](const auto& from, const auto& in) {
    return static_cast<size_t>(
        std::count_if(from.begin(), from.end(), [&](const auto& l) { return !in.contains(l); }));
  };
  return missing(a, b) + missing(b, a);
}

}  // namespace

RecordedSpace::RecordedSpace(const std::vector<Trial>& trials) {
  std::map<std::string, size_t> places;
  std::set<std::string> out;  // that failed once
  std::vector<const Trial*> order;
  for (const Trial& t : trials) {
    order.push_back(&t);
    if (t.verdict != Verdict::Timed && t.verdict != Verdict::Refused) out.insert(t.schedule);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Trial* a, const Trial* b) { return a->date < b->date; });
  for (const Trial* t : order) {
    if (t->verdict != Verdict::Timed || out.contains(t->schedule)) continue;
    const auto [it, is_new] = places.try_emplace(t->schedule, entries_.size());
    if (is_new) {
      entries_.push_back({{t->schedule, "recorded", t->predicted, "", t->features, t->running},
                          *t,
                          lines_of(t->schedule)});
      continue;
    }
    Trial& sum = entries_[it->second].trial;
    sum.times.insert(sum.times.end(), t->times.begin(), t->times.end());
  }
}

double RecordedSpace::best() const {
  double best = 0;
  for (const Entry& e : entries_) {
    const double time = median(e.trial.times);
    if (best == 0 || time < best) best = time;
  }
  return best;
}

const RecordedSpace::Entry* RecordedSpace::entry(const std::string& schedule) const {
  for (const Entry& e : entries_) {
    if (e.proposal.schedule == schedule) return &e;
  }
  return nullptr;
}

Trial RecordedSpace::trial(const std::string& schedule) const {
  const Entry* e = entry(schedule);
  return e ? e->trial : Trial{};
}

std::vector<Proposal> RecordedSpace::seeds() {
  std::vector<Proposal> out;
  for (const Entry& e : entries_) {
    if (out.empty() || e.proposal.predicted > 0) out.push_back(e.proposal);
  }
  if (!out.empty())
    std::stable_sort(out.begin() + 1, out.end(), [](const Proposal& a, const Proposal& b) {
      return a.predicted < b.predicted;
    });
  return out;
}

std::vector<const RecordedSpace::Entry*> RecordedSpace::nearest(
    const std::vector<std::string>& to) const {
  std::vector<std::pair<size_t, const Entry*>> order;
  for (const Entry& e : entries_) {
    size_t sum = 0;
    bool is_given = false;
    for (const std::string& schedule : to) {
      is_given |= schedule == e.proposal.schedule;
      if (const Entry* from = entry(schedule)) sum += differing(from->lines, e.lines);
    }
    if (!is_given) order.emplace_back(sum, &e);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Entry*> out;
  for (const auto& [far, e] : order) out.push_back(e);
  return out;
}

const std::vector<std::string>& RecordedSpace::nearest_few(const std::string& schedule) {
  const auto [it, is_new] = nearest_few_.try_emplace(schedule);
  if (!is_new) return it->second;
  for (const Entry* e : nearest({schedule})) {
    if (it->second.size() < kNeighbours) it->second.push_back(e->proposal.schedule);
  }
  return it->second;
}

std::vector<Proposal> RecordedSpace::neighbours(const std::string& schedule) {
  std::vector<Proposal> out;
  const std::vector<std::string> own = nearest_few(schedule);
  for (const std::string& near : own) out.push_back(entry(near)->proposal);
  for (const Entry& e : entries_) {
    const std::string& other = e.proposal.schedule;
    if (other == schedule || std::find(own.begin(), own.end(), other) != own.end()) continue;
    const std::vector<std::string>& of_other = nearest_few(other);
    if (std::find(of_other.begin(), of_other.end(), schedule) != of_other.end())
      out.push_back(e.proposal);
  }
  return out;
}

std::optional<Proposal> RecordedSpace::crossed(const std::string& a, const std::string& b,
                                               base::Random& random) {
  const auto found = nearest({a, b});
  if (found.empty()) return std::nullopt;
  const auto last = static_cast<int64_t>(std::min<size_t>(found.size(), 4)) - 1;
  return found[static_cast<size_t>(random.integer(0, last))]->proposal;
}

std::vector<Proposal> RecordedSpace::lower(const std::vector<Proposal>& raw) { return raw; }

Regret regret_of(std::string_view name, RecordedSpace& space, const std::vector<Sample>& others,
                 size_t trials, uint64_t seeds) {
  Regret out{std::vector<double>(trials, 0)};
  const double least = space.best();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto search = make_search(name, space, {seed, others});
    double best = 0;
    size_t n = 0;
    const auto note = [&] {
      if (best > 0 && least > 0) out.after[n] += (best / least - 1) / static_cast<double>(seeds);
      ++n;
    };
    while (n < trials) {
      // Trials are made several at a time, as the tuner does.
      const auto batch = search->next(n == 0 ? 1 : kBatch, [] { return false; });
      if (batch.empty()) break;
      for (const Proposal& p : batch) {
        if (n == trials) break;
        const Trial t = space.trial(p.schedule);
        search->tell(t);
        const double time = median(t.times);
        best = best == 0 ? time : std::min(best, time);
        note();
      }
    }
    while (n < trials) note();  // the search knows no more
  }
  return out;
}

}  // namespace nautilus::tune

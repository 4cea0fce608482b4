// SPDX-License-Identifier: Apache-2.0
#include "tune/measure/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace nautilus::tune {
namespace {

constexpr std::array<std::string_view, 5> kStandings = {"confirmed", "inverted", "refused", "wrong",
                                                        "failed"};

// The winner, the winner of the others, and so on.
std::vector<Winner> best_of_all(std::vector<Trial> trials, size_t most) {
  std::vector<Winner> out;
  while (out.size() < most) {
    auto next = winner_of(trials);
    if (!next) break;
    std::erase_if(trials, [&](const Trial& t) { return t.schedule == next->schedule; });
    out.push_back(std::move(*next));
  }
  return out;
}

Standing standing_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Timed:
      return Standing::Confirmed;
    case Verdict::Refused:
      return Standing::Refused;
    case Verdict::Wrong:
      return Standing::Wrong;
    case Verdict::Failed:
    case Verdict::Hung:
      return Standing::Failed;
  }
  return Standing::Failed;
}

class Verifier {
 public:
  Verifier(Database& database, const VerifyOptions& options, const Measure& measure)
      : database_(database), options_(options), measure_(measure) {}

  std::optional<Verification> run(const Problem& problem, std::string* error) {
    const auto recorded = database_.find(Query::of(problem), error);
    if (!recorded) return std::nullopt;
    const auto best = best_of_all(*recorded, std::max<size_t>(options_.schedules, 1));
    if (best.empty()) return std::nullopt;
    for (size_t k = 0; k < best.size(); ++k) {
      const std::string name =
          k == 0 ? "the winner" : fmt::format("number {} of the recorded", k + 1);
      out_.measured.push_back({name, best[k].schedule, best[k].median, {}, {}});
    }
    out_.measured.push_back({"the compiler's choice", "", 0, {}, {}});
    // Steps of the emulator are the same every time.
    const int rounds = problem.machine == "emulator" ? 1 : std::max(options_.rounds, 1);
    for (int round = 0; round < rounds; ++round) {
      for (Remeasured& m : out_.measured) {
        if (!m.objection() && !again(m, problem, error)) return std::nullopt;
      }
    }
    for (Remeasured& m : out_.measured) {
      if (!m.objection()) m.now = winner_of(m.trials);
    }
    out_.measured.back().schedule = out_.measured.back().trials.front().schedule;
    judge();
    return std::move(out_);
  }

 private:
  bool again(Remeasured& m, const Problem& problem, std::string* error) {
    auto trial = measure_(m.schedule, error);
    if (!trial) return false;
    if (!(trial->problem == problem)) {
      *error = "what measures answers with a trial of another problem";
      return false;
    }
    if (!database_.add(*trial, error)) return false;
    m.trials.push_back(std::move(*trial));
    return true;
  }

  void judge() {
    const Remeasured& winner = out_.measured.front();
    if (const Trial* t = winner.objection()) {
      out_.standing = standing_of(t->verdict);
      out_.reason = t->reason;
      return;
    }
    const Remeasured* fastest = &winner;
    for (const Remeasured& m : out_.measured) {
      // Complete, two of them may be one: noise between the two says nothing.
      const bool is_another = m.now && m.now->schedule != winner.now->schedule;
      if (is_another && m.now->median < fastest->now->median) fastest = &m;
    }
    out_.standing = Standing::Confirmed;
    if (winner.now->low <= fastest->now->median) return;
    out_.standing = Standing::Inverted;
    out_.reason = fmt::format("{} takes {:.3f} of its time", fastest->name,
                              fastest->now->median / winner.now->median);
  }

  Database& database_;
  const VerifyOptions& options_;
  const Measure& measure_;
  Verification out_;
};

}  // namespace

std::string_view word(Standing standing) { return kStandings[static_cast<size_t>(standing)]; }

const Trial* Remeasured::objection() const {
  const auto it = std::find_if(trials.begin(), trials.end(),
                               [](const Trial& t) { return t.verdict != Verdict::Timed; });
  return it == trials.end() ? nullptr : &*it;
}

std::optional<Verification> verify(Database& database, const Problem& problem,
                                   const VerifyOptions& options, const Measure& measure,
                                   std::string* error) {
  return Verifier(database, options, measure).run(problem, error);
}

}  // namespace nautilus::tune

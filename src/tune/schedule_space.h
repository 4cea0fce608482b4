// SPDX-License-Identifier: Apache-2.0
// The schedules of a program as a Space: seeds by the model, steps of one line, mixtures. What
// replay or the passes of a kernel refuse is left out here, before anything is compiled.
#pragma once

#include <set>

#include "tune/measure.h"
#include "tune/search.h"

namespace nautilus::tune {

class ScheduleSpace final : public Space {
 public:
  explicit ScheduleSpace(const Subject& subject) : subject_(subject) {}

  // The compiler's own choice; empty if the program has none.
  std::string own_choice();
  std::optional<Proposal> seed(size_t n) override;
  std::optional<Proposal> mutated(const std::string& schedule, base::Random& random) override;
  std::vector<Proposal> neighbours(const std::string& schedule) override;
  std::optional<Proposal> crossed(const std::string& a, const std::string& b,
                                  base::Random& random) override;

  // How often schedules were refused, by the reason without its numbers.
  const std::map<std::string, int64_t>& refusals() const { return refusals_; }

 private:
  // With all its lines. Nothing if it is not legal, or has kernels that were given out before.
  std::optional<Proposal> legal(const std::string& text, std::string name, double predicted);

  // By the model, not asked yet whether they are legal.
  const std::vector<Proposal>& candidates();
  // Those one line away that change what runs at the sizes of the problem, not asked yet whether
  // they are legal.
  const std::vector<Proposal>& others_of(const std::string& schedule);

  const Subject& subject_;
  std::optional<std::vector<Proposal>> candidates_;
  std::map<std::string, std::vector<Proposal>> others_;  // by schedule
  std::set<std::string> given_;                          // what runs, of all that were given out
  std::map<std::string, int64_t> refusals_;
};

}  // namespace nautilus::tune

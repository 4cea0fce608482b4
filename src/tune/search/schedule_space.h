// SPDX-License-Identifier: Apache-2.0
// The schedules of a program as a Space: seeds by the cost model, steps of one line, mixtures.
// Schedules that replay or the passes of a kernel refuse are left out before anything is compiled.
#pragma once

#include "tune/measure/lowered.h"
#include "tune/search/search.h"

namespace nautilus::tune {

// Lowers texts, in any process; one answer for each, in the same order.
using Lower = std::function<std::vector<Lowered>(const std::vector<std::string>&)>;
// In this process, one after another.
Lower lower_here(const Subject& subject);

class ScheduleSpace final : public Space {
 public:
  // `lower` is called from one thread at a time. `more`: seeds after the compiler's own choice.
  ScheduleSpace(const Subject& subject, Lower lower, std::vector<Proposal> more = {})
      : subject_(subject), lower_(std::move(lower)), more_(std::move(more)) {}

  // The compiler's own choice, with all its lines. Nothing, and why, if the program has none.
  std::optional<std::string> own_choice(std::string* error);
  std::vector<Proposal> seeds() override;
  std::vector<Proposal> neighbours(const std::string& schedule) override;
  std::optional<Proposal> crossed(const std::string& a, const std::string& b,
                                  base::Random& random) override;
  std::vector<Proposal> lower(const std::vector<Proposal>& raw) override;

  // How often schedules were refused, by the reason without its numbers.
  const std::map<std::string, int64_t>& refusals() const { return refusals_; }

 private:
  const Subject& subject_;
  Lower lower_;
  std::vector<Proposal> more_;
  std::string own_choice_;
  // Alternatives of kernels that run at the sizes of the problem, by schedule.
  std::map<std::string, Running> running_;
  std::map<std::string, int64_t> refusals_;
};

}  // namespace nautilus::tune

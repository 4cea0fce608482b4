// SPDX-License-Identifier: Apache-2.0
// Which decisions of the winner mattered, from trials alone: the fastest schedule with the winner's
// value of a decision against the fastest with another value.
//
// Such a pair may differ in other lines, too; how many of those a search or a person took is
// counted, and the fastest that differs in nothing else has a place of its own. Lines that the
// compiler's rules took in both schedules follow from the others and do not count.
//
// Where a kernel has alternatives, a schedule has a value for each, and trials do not say which
// ran. Schedules with equally many are compared one by one; else a decision has another value only
// if no alternative has a value of the other schedule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/records/winner.h"

namespace nautilus::tune {

// A schedule with another value.
struct OtherValue {
  std::string value;
  double median = 0;
  size_t further = 0;  // further decisions that differ from the winner's
};

struct DecisionEffect {
  std::string kernel;                 // empty: of the whole program
  std::string decision;               // `tile i`
  std::string value;                  // the winner's; empty: it has no such line
  std::optional<std::string> choice;  // what the compiler's choice has, if it is another one
  double best_with = 0;               // median of the fastest with the winner's value
  size_t with = 0;                    // schedules timed
  size_t without = 0;
  OtherValue best_without;
  std::optional<OtherValue> alone;  // the fastest that differs in this decision only

  // How much longer the fastest without the value takes, as a share; 0 if there is nothing to
  // compare it with.
  double change() const { return change_to(best_without); }
  double change_to(const OtherValue& other) const {
    return best_with > 0 ? other.median / best_with - 1 : 0;
  }
};

struct DecisionEffects {
  std::vector<DecisionEffect> effects;  // the largest first
  std::vector<std::string> untried;     // decisions that every schedule has as the winner
  size_t unread = 0;                    // schedules whose text this version does not read
};

// `winner` is one of the schedules; so is `choice`, which may be missing.
DecisionEffects decision_effects(const std::vector<Winner>& schedules, const std::string& winner,
                                 const std::optional<std::string>& choice);

}  // namespace nautilus::tune

// SPDX-License-Identifier: Apache-2.0
// Tunables of a schedule: a word may be left open, with what may stand there.
//
//   tile i cta ?{128,192} wg 64 user
//   tile j ?{64,96,128} user
//   split j ?{fill,8} combine ?{kernel,last} user
//
// A schedule with holes says what to try; it makes no kernels before each hole is filled.
#pragma once

#include "schedule/schedule.h"

namespace nautilus::schedule {

// The choices of a hole; one for any other word: itself. None if it is no well-formed hole.
std::vector<std::string> choices_of(std::string_view word);

// More than so many are not made. The count is that, or more than kMostFillings.
constexpr size_t kMostFillings = 10000;
size_t count_fillings(const std::vector<std::string>& words);
// All fillings of a decision's words, the last hole changing fastest.
std::vector<std::vector<std::string>> fillings(const std::vector<std::string>& words);

// The first decision that has a hole, or null.
const Decision* find_hole(const Schedule& schedule);

struct Filling {
  Schedule schedule;  // decisions that were filled are `tuned`
  std::string name;   // the filled decisions: "tile i cta 192 wg 64; tile j 96"
};

// All fillings of a schedule, the last hole changing fastest. Refused if they are too many to try.
Outcome<std::vector<Filling>> fill_holes(const Schedule& schedule);

}  // namespace nautilus::schedule

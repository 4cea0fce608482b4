// SPDX-License-Identifier: Apache-2.0
// Holes of a schedule: a list of possible words in place of one.
//
//   tile i ?{128,192}; tile j ?{64,96,128}; ring K slots ?{2,3,4} loader 0
//
// A schedule with holes says what to try; it makes no kernels before each hole is filled.
#pragma once

#include "schedule/text/schedule.h"

namespace nautilus::schedule {

// The most fillings that are made.
constexpr size_t kMostFillings = 10000;

struct Filling {
  std::string text;  // of a schedule without holes; decisions that were filled are `tuned`
  std::string name;  // the filled decisions: "tile i 192; tile j 96"
};

// All fillings of a schedule's text, the last hole changing fastest. Refused, with the line, if a
// hole is not well formed or there are too many fillings.
Outcome<std::vector<Filling>> fill_holes(std::string_view text);

}  // namespace nautilus::schedule
